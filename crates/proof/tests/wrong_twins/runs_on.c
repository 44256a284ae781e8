// Functions that run on in others, and such as never come back. Compiled, never run.

// Ends with a call that comes back, into code whose frame is the same.
int leads(void);
// Two parts of one function, each beginning without a frame.
int in_two(int a, int b, int c, int d);
// The first goes on in the middle of the second, which writes less.
int enters(int a), entered(int a);
__asm__(".text\n"
        ".type helper, @function\n"
        "helper: .cfi_startproc\n xor %eax, %eax\n ret\n .cfi_endproc\n .size helper, . - helper\n"
        ".type leads, @function\n"
        "leads: .cfi_startproc\n push %rbx\n .cfi_adjust_cfa_offset 8\n .cfi_offset rbx, -16\n"
        "xor %eax, %eax\n xor %r10d, %r10d\n xor %r11d, %r11d\n call helper\n"
        ".cfi_endproc\n .size leads, . - leads\n"
        ".type runs_on, @function\n"
        "runs_on: .cfi_startproc\n .cfi_adjust_cfa_offset 8\n .cfi_offset rbx, -16\n"
        "lea 5(%rax), %eax\n pop %rbx\n .cfi_adjust_cfa_offset -8\n .cfi_restore rbx\n ret\n"
        ".cfi_endproc\n .size runs_on, . - runs_on\n"
        ".type in_two, @function\n"
        "in_two: .cfi_startproc\n test %edi, %edi\n je other_part\n lea 1(%rsi), %eax\n ret\n"
        "1: mov %edx, %eax\n ret\n .cfi_endproc\n .size in_two, . - in_two\n"
        ".type other_part, @function\n"
        "other_part: .cfi_startproc\n add %ecx, %edx\n jmp 1b\n .cfi_endproc\n .size other_part, . - other_part\n"
        ".type enters, @function\n"
        "enters: .cfi_startproc\n xor %r10d, %r10d\n test %r10d, %r10d\n test %edi, %edi\n jne 1f\n xor %eax, %eax\n ret\n"
        ".cfi_endproc\n .size enters, . - enters\n"
        ".type entered, @function\n"
        "entered: .cfi_startproc\n xor %r11d, %r11d\n test %r11d, %r11d\n 1: lea 1(%rdi), %eax\n mov %edx, %r9d\n"
        "test %r9d, %r9d\n ret\n"
        ".cfi_endproc\n .size entered, . - entered\n");

__attribute__((noinline)) int keeps(int a) {
    int sum = 0;
    do sum += leads();
    while (--a);
    return sum;
}
// The C library's function of this name never returns.
__attribute__((noinline)) int err(void) {
    int value;
    __asm__ volatile("mov $7, %0" : "=r"(value));
    return value;
}
__attribute__((noinline)) int goes_on(int a) {
    int sum = 0;
    do sum += err();
    while (--a);
    return sum;
}
__attribute__((noinline, noreturn)) void __fortify_fail(int code) {
    for (;;) __asm__ volatile("mov %0, %%eax" : : "r"(code) : "eax");
}
__attribute__((noinline)) int checks(int a) {
    if (a > 5) __fortify_fail(a);
    return a;
}
int main(int argc, char **argv) { return keeps(argc) + in_two(argc, 2, 3, 4) + enters(argc) + entered(argc) + checks(argc) + goes_on(argc) + !argv; }
