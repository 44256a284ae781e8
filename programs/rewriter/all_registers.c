// Inline assembly that uses every general register but rsp at once, across branches and a local
// call, and every xmm.
//# flags: -fomit-frame-pointer
//# twins: all vectors_too
#include <stdio.h>

unsigned long results[15] __attribute__((visibility("hidden")));
__attribute__((noinline)) void all(unsigned long seed) {
    __asm__ volatile(
        "lea -128(%%rsp), %%rsp\n push %%rbp\n push %%rbx\n"
        "lea 1(%%rax), %%rbx\n lea 2(%%rax), %%rcx\n lea 3(%%rax), %%rdx\n lea 4(%%rax), %%rsi\n lea 5(%%rax), %%rdi\n"
        "lea 6(%%rax), %%rbp\n lea 7(%%rax), %%r8\n lea 8(%%rax), %%r9\n lea 9(%%rax), %%r10\n lea 10(%%rax), %%r11\n"
        "lea 11(%%rax), %%r12\n lea 12(%%rax), %%r13\n lea 13(%%rax), %%r14\n mov $20, %%r15d\n"
        "1: add %%rbx, %%rax\n xor %%rcx, %%rbx\n rol $7, %%rcx\n add %%rdx, %%rcx\n xor %%rsi, %%rdx\n add %%rdi, %%rsi\n"
        "xor %%rbp, %%rdi\n add %%r8, %%rbp\n rol $3, %%r8\n xor %%r9, %%r8\n add %%r10, %%r9\n xor %%r11, %%r10\n"
        "add %%r12, %%r11\n xor %%r13, %%r12\n add %%r14, %%r13\n xor %%r15, %%r14\n dec %%r15\n jnz 1b\n"
        "push %%rax\n lea results(%%rip), %%rax\n mov %%rbx, 8(%%rax)\n mov %%rcx, 16(%%rax)\n mov %%rdx, 24(%%rax)\n"
        "mov %%rsi, 32(%%rax)\n mov %%rdi, 40(%%rax)\n mov %%rbp, 48(%%rax)\n mov %%r8, 56(%%rax)\n mov %%r9, 64(%%rax)\n"
        "mov %%r10, 72(%%rax)\n mov %%r11, 80(%%rax)\n mov %%r12, 88(%%rax)\n mov %%r13, 96(%%rax)\n mov %%r14, 104(%%rax)\n"
        "mov %%r15, 112(%%rax)\n pop %%rbx\n mov %%rbx, (%%rax)\n pop %%rbx\n pop %%rbp\n lea 128(%%rsp), %%rsp\n"
        : "+a"(seed) :
        : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "cc", "memory");
}
__attribute__((noinline)) unsigned long vectors_too(unsigned long seed) {
    unsigned long sum;
    __asm__ volatile(
        "movq %1, %%xmm0\n pshufd $0x1b, %%xmm0, %%xmm1\n paddq %%xmm0, %%xmm1\n movdqa %%xmm1, %%xmm2\n pxor %%xmm0, %%xmm2\n"
        "movdqa %%xmm2, %%xmm3\n paddd %%xmm1, %%xmm3\n movdqa %%xmm3, %%xmm4\n psllq $3, %%xmm4\n movdqa %%xmm4, %%xmm5\n"
        "movdqa %%xmm5, %%xmm6\n paddb %%xmm2, %%xmm6\n movdqa %%xmm6, %%xmm7\n movdqa %%xmm7, %%xmm8\n psubw %%xmm3, %%xmm8\n"
        "movdqa %%xmm8, %%xmm9\n movdqa %%xmm9, %%xmm10\n pxor %%xmm7, %%xmm10\n movdqa %%xmm10, %%xmm11\n movdqa %%xmm11, %%xmm12\n"
        "paddq %%xmm4, %%xmm12\n movdqa %%xmm12, %%xmm13\n movdqa %%xmm13, %%xmm14\n psrlq $2, %%xmm14\n movdqa %%xmm14, %%xmm15\n"
        "paddq %%xmm1, %%xmm15\n pxor %%xmm5, %%xmm15\n paddq %%xmm6, %%xmm15\n pxor %%xmm9, %%xmm15\n paddq %%xmm13, %%xmm15\n movq %%xmm15, %0"
        : "=r"(sum) : "r"(seed)
        : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    return sum;
}
int main(void) {
    for (unsigned long seed = 1; seed < 4; seed++) {
        all(seed * 0x123456789abcdef);
        for (int i = 0; i < 15; i++) printf("%lx ", results[i]);
        printf("%lx\n", vectors_too(seed * 77777777777));
    }
    return results[0] == 0;
}
