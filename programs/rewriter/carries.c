// Arithmetic wider than a register: carries that live in a flag from one instruction to the next.
//# twins: big carry divide
#include <stdint.h>
#include <stdio.h>

typedef unsigned __int128 wide;
__attribute__((noinline)) wide big(wide a, wide b) { return a * b + (a - b) + (a < b ? a << 3 : b >> 5); }
__attribute__((noinline)) wide divide(wide a, wide b) { return a / b * 7 + a % b; }
__attribute__((noinline)) unsigned long carry(const unsigned long *a, const unsigned long *b, unsigned long *out) {
    unsigned long high;
    __asm__ volatile("mov (%1), %%rax; add (%2), %%rax; mov %%rax, (%3); mov 8(%1), %%rax; lea 8(%3), %%r8; adc 8(%2), %%rax;"
                     "mov %%rax, (%%r8); setc %%al; movzbl %%al, %%eax"
                     : "=&a"(high) : "r"(a), "r"(b), "r"(out) : "r8", "cc", "memory");
    return high;
}
__attribute__((noinline)) unsigned long chain(const unsigned long *a, unsigned long *to, long n) {
    unsigned long top = 0;
    // lea and dec leave the carry alone
    __asm__ volatile("xor %%r9d, %%r9d\n1: mov (%1), %%r9\n adc %%r9, (%2)\n lea 8(%1), %1\n lea 8(%2), %2\n dec %3\n jnz 1b\n adc $0, %0"
                     : "+r"(top), "+r"(a), "+r"(to), "+r"(n) : : "r9", "cc", "memory");
    return top;
}
int main(void) {
    wide r = big((wide)1 << 70 | 12345, 987654321987654321u), d = divide((wide)1 << 100, 1234567890123456789u);
    printf("%lx %lx %lx %lx\n", (uint64_t)(r >> 64), (uint64_t)r, (uint64_t)(d >> 64), (uint64_t)d);
    unsigned long x[2] = {~0ul, ~0ul}, y[2] = {1, 0}, z[2];
    unsigned long out = carry(x, y, z);
    printf("%lu %lu %lu\n", out, z[0], z[1]);
    unsigned long p[6] = {~0ul, ~0ul, 3, ~0ul, ~0ul, ~0ul}, q[6] = {1, 0, ~0ul, 0, 5, ~0ul};
    out = chain(p, q, 6);
    printf("%lu %lu %lu %lu %lu %lu %lu\n", out, q[0], q[1], q[2], q[3], q[4], q[5]);
}
