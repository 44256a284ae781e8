// Functions that go on in the middle of another: what callers of the one may keep is not what
// callers of the other may.
//# twins: enters entered by_one by_other
#include <stdio.h>

// Writes r10, and goes on in the middle of the next, which does not.
// What calls them leaves alone all that they do, and only its own callers rely on that.
long enters(long a), entered(long a), calls_enters(long a), calls_entered(long a);
__asm__(".text\n"
        ".type enters, @function\n"
        "enters: .cfi_startproc\n lea 3(%rdi), %r10\n test %rdi, %rdi\n jne 1f\n xor %eax, %eax\n ret\n"
        ".cfi_endproc\n .size enters, . - enters\n"
        ".type entered, @function\n"
        "entered: .cfi_startproc\n lea 7(%rdi), %rdi\n 1: imul $5, %rdi, %r11\n lea 1(%rdi,%r11), %rax\n ret\n"
        ".cfi_endproc\n .size entered, . - entered\n"
        ".type calls_enters, @function\n"
        "calls_enters: .cfi_startproc\n sub $8, %rsp\n .cfi_adjust_cfa_offset 8\n call enters\n"
        "add $8, %rsp\n .cfi_adjust_cfa_offset -8\n ret\n .cfi_endproc\n .size calls_enters, . - calls_enters\n"
        ".type calls_entered, @function\n"
        "calls_entered: .cfi_startproc\n sub $8, %rsp\n .cfi_adjust_cfa_offset 8\n call entered\n"
        "add $8, %rsp\n .cfi_adjust_cfa_offset -8\n ret\n .cfi_endproc\n .size calls_entered, . - calls_entered\n");

// Keeps a value in r10 over the call.
__attribute__((noinline)) long by_other(long a) {
    long kept = a * 11, result;
    __asm__ volatile("mov %2, %%r10\n mov %1, %%rdi\n sub $128, %%rsp\n call calls_entered\n add $128, %%rsp\n add %%r10, %%rax\n mov %%rax, %0"
                     : "=r"(result) : "r"(a), "r"(kept) : "rax", "rdi", "r10", "r11", "cc", "memory");
    return result;
}
// Keeps a value in rsi over the call, which neither writes.
__attribute__((noinline)) long by_one(long a) {
    long kept = a * 13, result;
    __asm__ volatile("mov %2, %%rsi\n mov %1, %%rdi\n sub $128, %%rsp\n call calls_enters\n add $128, %%rsp\n add %%rsi, %%rax\n mov %%rax, %0"
                     : "=r"(result) : "r"(a), "r"(kept) : "rax", "rdi", "rsi", "r10", "r11", "cc", "memory");
    return result;
}
int main(void) {
    for (long a = 0; a < 5; a++) printf("%ld %ld\n", by_one(a), by_other(a));
    return 0;
}
