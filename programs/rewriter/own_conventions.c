// Assembly with conventions of its own: results in flags, arguments in r10 and r11, registers kept
// over a call that by the ABI may change them, two entries of one function, a stack of its own,
// unwind tables by hand.
//# twins: by_hand carry_of keeps_all
#include <stdio.h>

__asm__(
    ".text\n"
    ".macro function name\n .globl \\name\n .type \\name, @function\n\\name:\n .cfi_startproc\n.endm\n"
    ".macro end name\n .cfi_endproc\n .size \\name, . - \\name\n.endm\n"

    "function by_hand\n"
    "push %rbx\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset rbx, 0\n"
    "mov %rdi, %rbx\n sub $16, %rsp\n .cfi_adjust_cfa_offset 16\n"
    "call *%rsi\n add %rbx, %rax\n add $16, %rsp\n .cfi_adjust_cfa_offset -16\n"
    "test %rax, %rax\n js 1f\n .cfi_remember_state\n"
    "pop %rbx\n .cfi_adjust_cfa_offset -8\n .cfi_restore rbx\n ret\n"
    "1: .cfi_restore_state\n mov $-1, %rax\n"
    "pop %rbx\n .cfi_adjust_cfa_offset -8\n .cfi_restore rbx\n ret\n"
    "end by_hand\n"

    "function next_thrice\n add $1, %rdi\n .globl thrice\n thrice: imul $3, %rdi, %rax\n ret\n end next_thrice\n"

    "function compares\n cmp %rsi, %rdi\n ret\n end compares\n"
    "function carry_of\n call compares\n sbb %rax, %rax\n seto %dl\n movzbl %dl, %edx\n lea (%rax,%rdx,4), %rax\n ret\n end carry_of\n"

    "function adds_odd\n add %r10, %r11\n ret\n end adds_odd\n"
    "function keeps_all\n mov %rdi, %r10\n mov %rsi, %r11\n mov $5, %ecx\n mov $7, %r9d\n movq %rdi, %xmm15\n"
    "call adds_odd\n mov %r11, %rax\n add %rcx, %rax\n add %r9, %rax\n movq %xmm15, %rdx\n add %rdx, %rax\n ret\n end keeps_all\n"

    "function on_another_stack\n push %rbp\n .cfi_adjust_cfa_offset 8\n .cfi_rel_offset rbp, 0\n mov %rsp, %rbp\n .cfi_def_cfa_register rbp\n"
    "mov %rdi, %rsp\n mov %rdx, %rdi\n call *%rsi\n mov %rbp, %rsp\n pop %rbp\n .cfi_def_cfa rsp, 8\n ret\n end on_another_stack\n"

    // Gone on in behind a function without unwind entry, by a jump.
    "function departs\n mov $5, %esi\n jmp 5f\n end departs\n"
    ".type bare, @function\n bare: ret\n 5: lea (%rdi,%rsi), %rax\n ret\n .size bare, . - bare\n");
long by_hand(long, long (*)(long)), next_thrice(long), thrice(long), carry_of(long, long), keeps_all(long, long), departs(long);
long on_another_stack(void *top, long (*)(long), long);

__attribute__((noinline)) long square(long x) { return x * x - 5; }
static char stack[65536] __attribute__((aligned(16)));

int main(void) {
    printf("%ld %ld\n", by_hand(4, square), by_hand(-100, square));
    printf("%ld %ld\n", next_thrice(4), thrice(4));
    printf("%ld %ld %ld\n", carry_of(1, 2), carry_of(2, 1), carry_of(-9223372036854775807L - 1, 1));
    printf("%ld %ld\n", keeps_all(10, 20), departs(8));
    printf("%ld\n", on_another_stack(stack + sizeof stack, square, 9));
}
