// Functions that read what stands behind the call of them, or come back beside it: a function that
// calls them so has no twin.
//# shapes: pie no-pie static stripped
//# twins: main
//# refused: text_behind calls_address_reader
//# refused: far_behind calls_address_reader
//# refused: skips calls_address_reader
//# refused: by_a_jump calls_address_reader
//# refused: by_exchange calls_address_reader
#include <stdio.h>

// Each returns rax, and keeps what it should. Alignment shows whether what is read lies where it
// should.
asm(".text\n"
    // The text's address is the return address; goes on behind its end.
    "reads_text: .cfi_startproc\n pop %rax\n .cfi_def_cfa_offset 0\n .cfi_register rip, rax\n mov %rax, %rdx\n"
    "1: inc %rdx\n cmpb $0, -1(%rdx)\n jne 1b\n jmp *%rdx\n .cfi_endproc\n .type reads_text, @function\n .size reads_text, .-reads_text\n"
    // A number of four bytes stands behind the call; found late, by a frame.
    "reads_number: .cfi_startproc\n push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset 6, -16\n mov %rsp, %rbp\n .cfi_def_cfa_register 6\n"
    " push %rcx\n xor %eax, %eax\n mov 8(%rbp), %rdx\n mov %rdx, %rcx\n mov (%rcx), %eax\n add $4, %rcx\n mov %rcx, 8(%rbp)\n"
    " pop %rcx\n pop %rbp\n .cfi_def_cfa 7, 8\n ret\n .cfi_endproc\n .type reads_number, @function\n .size reads_number, .-reads_number\n"
    // Comes back two bytes later.
    "skips_two: .cfi_startproc\n push %rcx\n .cfi_def_cfa_offset 16\n mov $5, %eax\n addq $2, 8(%rsp)\n pop %rcx\n .cfi_def_cfa_offset 8\n ret\n .cfi_endproc\n"
    " .type skips_two, @function\n .size skips_two, .-skips_two\n"
    "skips_by_a_jump: .cfi_startproc\n lea 1(%rdi), %rdi\n jmp skips_two\n .cfi_endproc\n .type skips_by_a_jump, @function\n .size skips_by_a_jump, .-skips_by_a_jump\n"
    "exchanges: .cfi_startproc\n mov $9, %eax\n xchg %rdx, (%rsp)\n movzbl 1(%rdx), %eax\n xchg %rdx, (%rsp)\n ret\n .cfi_endproc\n"
    " .type exchanges, @function\n .size exchanges, .-exchanges\n");

__attribute__((noinline)) const char *text_behind(void) {
    const char *text;
    asm volatile("lea -128(%%rsp), %%rsp\n call reads_text\n .asciz \"behind the call\"\n lea 128(%%rsp), %%rsp"
                 : "=a"(text) : : "rdx", "cc", "memory");
    return text;
}
__attribute__((noinline)) int far_behind(void) {
    int number;
    asm volatile("lea -128(%%rsp), %%rsp\n call reads_number\n .long 4321\n lea 128(%%rsp), %%rsp"
                 : "=a"(number) : : "rdx", "cc", "memory");
    return number;
}
__attribute__((noinline)) int skips(void) {
    int number;
    asm volatile("lea -128(%%rsp), %%rsp\n call skips_two\n ud2\n lea 128(%%rsp), %%rsp" : "=a"(number) : : "cc", "memory");
    return number;
}
__attribute__((noinline)) int by_a_jump(void) {
    int number;
    asm volatile("lea -128(%%rsp), %%rsp\n call skips_by_a_jump\n ud2\n lea 128(%%rsp), %%rsp"
                 : "=a"(number) : : "rdi", "cc", "memory");
    return number;
}
__attribute__((noinline)) int by_exchange(void) {
    int number;
    asm volatile("lea -128(%%rsp), %%rsp\n call exchanges\n cmp $77, %%al\n lea 128(%%rsp), %%rsp"
                 : "=a"(number) : : "rdx", "cc", "memory");
    return number;
}
int main(void) {
    printf("%s %d %d %d %d\n", text_behind(), far_behind(), skips(), by_a_jump(), by_exchange());
}
