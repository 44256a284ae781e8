// Functions whose first bytes are branched to: a loop back to the entry, and to the second
// instruction of another's.
//# twins: to_itself_caller to_second_caller
#include <stdio.h>

long to_itself(long n, long sum);
long to_second(long n, long sum);
long from_outside(long n, long sum);
__asm__(".text\n .globl to_itself\n .type to_itself, @function\nto_itself:\n .cfi_startproc\n"
        " add %rdi, %rsi\n dec %rdi\n jnz to_itself\n mov %rsi, %rax\n ret\n .cfi_endproc\n .size to_itself, .-to_itself\n"
        " .globl to_second\n .type to_second, @function\nto_second:\n .cfi_startproc\n"
        " inc %rdi\n.Lsecond: add %rdi, %rsi\n dec %rdi\n jnz .Lsecond\n mov %rsi, %rax\n ret\n .cfi_endproc\n .size to_second, .-to_second\n"
        " .globl from_outside\n .type from_outside, @function\nfrom_outside:\n .cfi_startproc\n"
        " shl $2, %rdi\n jmp .Lsecond\n .cfi_endproc\n .size from_outside, .-from_outside\n");
__attribute__((noinline)) long to_itself_caller(long n) { return to_itself(n, 5) + 1; }
__attribute__((noinline)) long to_second_caller(long n) { return to_second(n, 7) * 1000 + from_outside(n, 9); }
int main(void) {
    for (long n = 1; n < 6; n++) printf("%ld %ld\n", to_itself_caller(n), to_second_caller(n));
}
