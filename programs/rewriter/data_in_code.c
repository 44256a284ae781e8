// Data among instructions: a constant read by the code before it, a table of jumps between two
// functions, and text.
//# twins: reads_beside jumps_beside
#include <stdio.h>

int reads_beside(int i);
int jumps_beside(unsigned long i, int x);
extern const char text_beside[];
__asm__(".text\n .globl reads_beside\n .type reads_beside, @function\nreads_beside:\n .cfi_startproc\n"
        " lea 1f(%rip), %rax\n movslq %edi, %rdi\n mov (%rax,%rdi,4), %eax\n add 2f(%rip), %eax\n ret\n"
        // Bytes that look like calls, jumps and halves of instructions.
        "1: .long 0xe8000001, 0x0f0b0f0b, 0xeb000000, 0x000000c3\n2: .long 1000\n"
        " .cfi_endproc\n .size reads_beside, .-reads_beside\n"
        " .globl text_beside\ntext_beside: .asciz \"text in code\"\n .balign 8\n"
        " .globl jumps_beside\n .type jumps_beside, @function\njumps_beside:\n .cfi_startproc\n"
        " cmp $2, %rdi\n ja 4f\n lea 9f(%rip), %rdx\n movslq (%rdx,%rdi,4), %rax\n add %rdx, %rax\n jmp *%rax\n"
        " .balign 4\n9: .long 1f-9b, 2f-9b, 3f-9b\n"
        "1: lea 1(%rsi), %eax\n ret\n2: lea (%rsi,%rsi,2), %eax\n ret\n3: mov %esi, %eax\n neg %eax\n ret\n4: xor %eax, %eax\n ret\n"
        " .cfi_endproc\n .size jumps_beside, .-jumps_beside\n");
int main(void) {
    for (int i = 0; i < 4; i++) printf("%x\n", (unsigned)reads_beside(i));
    for (unsigned long i = 0; i < 5; i++) printf("%d ", jumps_beside(i, 14));
    puts(text_beside);
}
