// -fipa-ra: callers keep values in caller-saved registers over calls of local functions that do not
// write them.
//# flags-gcc: -fipa-ra
//# twins: keep tiny tinier floating
#include <stdio.h>

static int calls;
__attribute__((noinline)) static int tiny(int x) { calls++; return x ^ 5; }
__attribute__((noinline)) static int tinier(int x) { return tiny(x) + 1; }
__attribute__((noinline)) static void nothing(void) { __asm__ volatile(""); }
__attribute__((noinline)) long keep(long a, long b, long c, long d, long e, long f) {
    long sum = 0;
    for (int i = 0; i < 50; i++) {
        sum += a * i + (long)tiny(i) * b - c;
        sum += tinier(i) * d + e - f;
        nothing();
    }
    return sum + a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6;
}
__attribute__((noinline)) double floating(double a, double b, float c) {
    double sum = 0;
    for (int i = 0; i < 20; i++) {
        sum += a * i;
        nothing();
        sum = sum * b + c;
        sum += tiny(i);
    }
    return sum + a + b + c;
}
int main(void) {
    long kept = keep(1, 2, 3, 4, 5, 6);
    printf("%ld %d\n", kept, calls);
    printf("%.6f\n", floating(1.5, 0.75, 0.5f));
    return kept == 0;
}
