// Instructions that share bytes: a branch into the middle of another instruction. No twin, and
// nothing else suffers.
//# twins: beside
//# refused: overlapping overlapping_instructions
#include <stdio.h>

int overlapping(int way);
__asm__(".text\n .globl overlapping\n .type overlapping, @function\noverlapping:\n .cfi_startproc\n"
        " test %edi, %edi\n jne 1f+1\n"
        // b8 imm32 is 'mov $…, %eax'; from its second byte on: 31 c0 'xor %eax, %eax'; ff c0 'inc
        // %eax'
        "1: .byte 0xb8, 0x31, 0xc0, 0xff, 0xc0\n"
        " add $5, %eax\n ret\n .cfi_endproc\n .size overlapping, .-overlapping\n");
__attribute__((noinline)) int beside(int n) { return overlapping(n & 1) * 2 + n; }
int main(void) {
    for (int i = 0; i < 4; i++) printf("%d %d\n", overlapping(i), beside(i));
    return overlapping(1) != 6;
}
