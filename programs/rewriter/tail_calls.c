// Calls in tail position, direct, through a pointer and through a table: at -O2 they are jumps.
//# twins: tail even odd third
#include <stdio.h>

__attribute__((noinline)) int odd(unsigned n);
__attribute__((noinline)) int even(unsigned n) { return n == 0 ? 1 : odd(n - 1); }
__attribute__((noinline)) int odd(unsigned n) { return n == 0 ? 0 : even(n - 1); }
__attribute__((noinline)) int one(int x) { return x + 1; }
__attribute__((noinline)) int two(int x) { return x + 2; }
__attribute__((noinline)) int third(int a, int b, int c, int d, int e, int f, int g) { return a - b + c - d + e - f + g; }
static int (*const table[])(int) = {one, two, two, one};
__attribute__((noinline)) int tail(int (*f)(int), int x) { return f(x * 2); }
__attribute__((noinline)) int by_table(unsigned i, int x) { return table[i & 3](x - 1); }
__attribute__((noinline)) int turned(int a, int b, int c, int d, int e, int f, int g) { return third(g, f, e, d, c, b, a); }
int main(void) {
    printf("%d %d\n", even(100001), odd(100001));
    for (int i = 0; i < 4; i++) printf("%d %d ", tail(table[i], i), by_table(i, i));
    printf("\n%d %d\n", turned(1, 2, 3, 4, 5, 6, 7), turned(70, 6, 5, 4, 3, 2, 10));
    return !even(10);
}
