// Functions of another convention, called by pointers: Microsoft's, by which a callee keeps rsi,
// rdi and xmm6 to xmm15.
//# twins: sum keeps over_loops
#include <stdio.h>

#define MICROSOFTS __attribute__((ms_abi))
typedef MICROSOFTS long function(long, long, double, double);

MICROSOFTS __attribute__((noinline)) long sum(long a, long b, double c, double d) { return a * 3 + b + (long)(c * d); }
function *volatile by_pointer = sum;

MICROSOFTS __attribute__((noinline)) long keeps(long a, long b, double c, double d) {
    function *f = by_pointer;
    long s = 0;
    for (int i = 0; i < 5; i++) s += f(a + i, b, c, d) + a + b + (long)(c + d);
    return s;
}

// Many values of either kind, over a call in a loop, with loads for a yield to wait for.
MICROSOFTS __attribute__((noinline)) double over_loops(function *f, const double *values, long count) {
    double a = values[0], b = values[1], c = values[2], d = values[3];
    for (long i = 4; i < count; i++) {
        a += (double)f(i, count, values[i], b);
        b = b * 0.5 + values[i - 1];
        c += a - d;
        d = d * 0.25 + values[i - 3];
    }
    return a + 2 * b + 3 * c + 4 * d;
}

int main(void) {
    double values[32];
    for (int i = 0; i < 32; i++) values[i] = i * 0.75 - 3;
    printf("%ld %g\n", keeps(3, 4, 1.5, 2.5), over_loops(by_pointer, values, 32));
}
