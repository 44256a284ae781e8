// Calls into a rewritten library by lazy binding: each first call goes through the dynamic linker,
// with its arguments kept.
//# library: lib/many.c
//# flags: -Wl,-z,lazy
//# twins: caller mixed_there wide_there
#include <stdio.h>

long mixed_there(int a, double b, long c, float d, char e, double f, const char *g, int h, int i);
int wide_there(long double a, double b[4], int n);
int called_in_turn(int (*f)(int), int n);
__attribute__((noinline)) int back(int n) { return n < 100 ? called_in_turn(back, n * 3) + 1 : n; }
__attribute__((noinline)) long caller(int n) {
    double values[4] = {n, n * 0.5, n * 0.25, 1};
    long sum = mixed_there(n, n * 1.5, n * 1000l, n * 0.5f, 'e', 2.25, "seven", 8, 9);
    return sum + wide_there(n * 1.0l, values, 4) + called_in_turn(back, n);
}
int main(void) {
    for (int i = 1; i < 6; i++) printf("%ld\n", caller(i));
}
