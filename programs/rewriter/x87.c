// The x87 stack: long double arithmetic kept over calls and branches, comparisons by fcomi, odd
// instructions, control word.
//# flags: -ffp-contract=off
//# twins: old transcend by_stack
#include <stdint.h>
#include <stdio.h>

static int calls;
__attribute__((noinline)) static int tiny(int x) { calls++; return x + 1; }
__attribute__((noinline)) long double old(long double a, long double b) {
    long double c = a;
    for (int i = 1; i < 6; i++) {
        c = c * b + i / (a + i);
        if (c > 2.0L) c -= tiny(i) * 0.125L;
    }
    return c;
}
__attribute__((noinline)) double transcend(double x) {
    double sine, root;
    __asm__("fldl %2; fsin; fstpl %0; fldl %2; fld1; faddp; fsqrt; fstpl %1" : "=m"(sine), "=m"(root) : "m"(x));
    return sine + root;
}
__attribute__((noinline)) int64_t by_stack(int64_t n) {
    int64_t result;
    __asm__("fildq %1; fld %%st(0); fmul %%st(1), %%st; fxch; fchs; faddp; fld1; fsubrp; fistpq %0" : "=m"(result) : "m"(n));
    return result;
}
__attribute__((noinline)) int rounded(double x, uint16_t mode) {
    uint16_t before, with;
    int result;
    __asm__ volatile("fnstcw %0" : "=m"(before));
    with = (before & 0xf3ff) | mode;
    __asm__ volatile("fldcw %2; fldl %3; fistpl %0; fldcw %1" : "=m"(result) : "m"(before), "m"(with), "m"(x));
    return result;
}
int main(void) {
    long double result = old(1.25L, 0.75L);
    printf("%.15Lf %d\n", result, calls);
    printf("%.12f %.12f\n", transcend(0.5), transcend(2));
    printf("%ld %ld\n", (long)by_stack(17), (long)by_stack(-3));
    for (int mode = 0; mode < 4; mode++) printf("%d %d ", rounded(2.5, mode << 10), rounded(-1.5, mode << 10));
    puts("");
}
