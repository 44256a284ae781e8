// Functions called like those of libraries that never return; these do, and their callers go on.
//# twins: err exit_late caller
#include <stdio.h>

__attribute__((noinline)) int err(int value) {
    __asm__ volatile("" : "+r"(value));
    return value * 3 + 1;
}
static __attribute__((noinline)) int errx(int value, const char *text) {
    __asm__ volatile("" : "+r"(value));
    return value + text[0];
}
__attribute__((noinline)) int exit_late(int a, int b) {
    int kept = a * b;
    int first = err(a);
    return kept + first + errx(b, "x") * kept;
}
__attribute__((noinline)) double caller(double x, long n) {
    double sum = 0;
    for (long i = 0; i < n; i++) sum += x * err((int)i) + exit_late((int)i, (int)n);
    return sum;
}
int main(void) {
    printf("%d %g\n", exit_late(6, 7), caller(0.5, 20));
    return 0;
}
