// A function that is not copied goes on by a jump table: a checker of copies does not see what it
// changes there. Its caller gives back what it found otherwise, and may be of a convention that
// keeps vectors.
//# twins: hands_on
//# refused: goes_on calls_twice_returning
#include <setjmp.h>
#include <stdio.h>

static jmp_buf home;

__attribute__((noinline)) int goes_on(int what, int with) {
    if (setjmp(home)) return 0;
    switch (what) {
    case 0: __asm__ volatile("xorps %%xmm6, %%xmm6\n xorps %%xmm8, %%xmm8" ::: "xmm6", "xmm8"); return with + 1;
    case 1: __asm__ volatile("nop" ::: "memory"); return with * 3;
    case 2: __asm__ volatile("nop\n nop" ::: "memory"); return with - 5;
    case 3: __asm__ volatile("nop\n nop\n nop" ::: "memory"); return with ^ 9;
    case 4: __asm__ volatile("xchg %%ax, %%ax" ::: "memory"); return with << 2;
    case 5: __asm__ volatile("xorps %%xmm9, %%xmm9" ::: "xmm9"); return with / 7;
    default: return with;
    }
}

__asm__(".text\n .p2align 4\n .globl hands_on\n .type hands_on, @function\n"
        "hands_on: .cfi_startproc\n push %rdi\n .cfi_adjust_cfa_offset 8\n push %rsi\n .cfi_adjust_cfa_offset 8\n"
        "sub $8, %rsp\n .cfi_adjust_cfa_offset 8\n call goes_on\n lea said(%rip), %rdi\n call puts@PLT\n"
        "add $8, %rsp\n .cfi_adjust_cfa_offset -8\n pop %rsi\n .cfi_adjust_cfa_offset -8\n"
        "pop %rdi\n .cfi_adjust_cfa_offset -8\n ret\n .cfi_endproc\n .size hands_on, .-hands_on\n");

const char said[] = "said";
void hands_on(int, int);

int main(void) {
    void (*volatile by_pointer)(int, int) = hands_on;
    for (int what = 0; what < 8; what++) {
        by_pointer(what, 10);
        printf("%d\n", goes_on(what, 100));
    }
    return 0;
}
