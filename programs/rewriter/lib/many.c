// A shared object whose functions take arguments of all kinds, and call back.
#include <string.h>

__attribute__((noinline)) long mixed_there(int a, double b, long c, float d, char e, double f, const char *g, int h, int i) {
    return a + (long)(b * 4) + c + (long)(d * 8) + e + (long)(f * 4) + (long)strlen(g) + h * 10 + i;
}
__attribute__((noinline)) int wide_there(long double a, double b[4], int n) {
    for (int i = 0; i < n; i++) a += b[i] * (i + 1);
    return (int)a;
}
int called_in_turn(int (*f)(int), int n) { return f(n) * 2 + n; }
