// What callers may keep where: caller-saved registers kept across local functions (-fipa-ra), red-zone leaves, arguments on
// the stack, alloca, varargs, wide vectors, flags over branches, string instructions, x87, __int128 and carries.
#include <alloca.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int calls;
__attribute__((noinline)) static int tiny(int x) { calls++; return x ^ 5; }
__attribute__((noinline)) static int tinier(int x) { return tiny(x) + 1; }
__attribute__((noinline)) long keep(long a, long b, long c, long d, long e, long f) {
    long sum = 0;
    for (int i = 0; i < 50; i++) sum += a * i + tiny(i) * b - c + tinier(i) * d + e - f;
    return sum + a + b + c + d + e + f;
}
__attribute__((noinline)) long red_zone(long a, long b) {
    volatile long local[8];
    for (int i = 0; i < 8; i++) local[i] = a * i;
    long sum = 0;
    for (int i = 0; i < 8; i++) sum += local[i] ^ b;
    return sum;
}
__attribute__((noinline)) double mixed(int count, ...) {
    va_list list;
    va_start(list, count);
    double sum = 0;
    for (int i = 0; i < count; i++) sum += i % 2 ? va_arg(list, int) : va_arg(list, double);
    va_end(list);
    return sum;
}
__attribute__((noinline)) unsigned stack(unsigned n) {
    unsigned char *memory = alloca(n + 1);
    memset(memory, (int)n, n + 1);
    unsigned sum = 0;
    for (unsigned i = 0; i <= n; i++) sum = sum * 31 + memory[i];
    return sum;
}
typedef float wide __attribute__((vector_size(32)));
__attribute__((noinline)) wide vectors(wide a, wide b) {
    wide c = a * b + a;
    for (int i = 0; i < 5; i++) { c = c * b - a; tiny(i); }
    return c;
}
__attribute__((noinline)) unsigned __int128 big(unsigned __int128 a, unsigned __int128 b) {
    return a * b + (a - b) + (a < b ? a << 3 : b >> 5);
}
__attribute__((noinline)) long double old(long double a, long double b) {
    long double c = a;
    for (int i = 1; i < 6; i++) c = c * b + i / (a + i);
    return c;
}
__attribute__((noinline)) int compare(const char *a, const char *b, size_t n) {
    int result;
    __asm__ volatile("cld; cmp %%rax, %%rax; repe cmpsb; seta %%al; setb %%cl; sub %%cl, %%al; movsbl %%al, %0"
                     : "=a"(result), "+S"(a), "+D"(b), "+c"(n) : : "cc", "memory");
    return result;
}
__attribute__((noinline)) unsigned long carry(const unsigned long *a, const unsigned long *b, unsigned long *out) {
    unsigned long high;
    __asm__ volatile("mov (%1), %%rax; add (%2), %%rax; mov %%rax, (%3); mov 8(%1), %%rax; lea 8(%3), %%r8; adc 8(%2), %%rax;"
            "mov %%rax, (%%r8); setc %%al; movzbl %%al, %%eax" : "=&a"(high) : "r"(a), "r"(b), "r"(out) : "r8", "cc", "memory");
    return high;
}
int main(void) {
    printf("%ld %d\n", keep(1, 2, 3, 4, 5, 6), calls);
    printf("%ld\n", red_zone(12345, 678));
    printf("%f\n", mixed(7, 1.5, 2, 2.5, 3, 3.5, 4, 4.5));
    for (unsigned n = 1; n < 400; n += 37) printf("%u ", stack(n));
    wide a = {1, 2, 3, 4, 5, 6, 7, 8}, b = {.5f, .25f, 1, 2, 1, .5f, 3, .1f};
    wide c = vectors(a, b);
    for (int i = 0; i < 8; i++) printf("%f ", c[i]);
    unsigned __int128 r = big((unsigned __int128)1 << 70 | 12345, 987654321987654321u);
    printf("\n%lx %lx\n", (uint64_t)(r >> 64), (uint64_t)r);
    printf("%.15Lf\n", old(1.25L, 0.75L));
    printf("%d %d %d\n", compare("same", "same", 4), compare("abd", "abc", 3), compare("abb", "abc", 3));
    unsigned long x[2] = {~0ul, ~0ul}, y[2] = {1, 0}, z[2];
    unsigned long out = carry(x, y, z);
    printf("%lu %lu %lu\n", out, z[0], z[1]);
}
