// clang's regcall, by pointers: arguments in registers in which the ABI passes none (rax, r10 to
// r12, r14, r15, xmm8 to xmm15).
//# compilers: clang
//# twins: __regcall3__adds __regcall3__many_vectors calls_by_pointer __regcall3__hands_on __regcall3__keeps_on
#include <stdio.h>

#define REGCALL __attribute__((regcall))
#define APART __attribute__((noinline))

typedef REGCALL long of_twelve(long, long, long, long, long, long, long, long, long, long, long, long);
typedef REGCALL double of_sixteen(double, double, double, double, double, double, double, double,
                                  double, double, double, double, double, double, double, double);

APART REGCALL long adds(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k + 12 * l;
}
APART REGCALL double many_vectors(double a, double b, double c, double d, double e, double f, double g, double h,
                                  double i, double j, double k, double l, double m, double n, double o, double p) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k + 12 * l + 13 * m + 14 * n +
           15 * o + 16 * p;
}

of_twelve *volatile twelve = adds;
of_sixteen *volatile sixteen = many_vectors;

// Passes on what it was passed, and touches none of it.
APART REGCALL double hands_on(double a, double b, double c, double d, double e, double f, double g, double h,
                              double i, double j, double k, double l, double m, double n, double o, double p) {
    return sixteen(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) + 0.5;
}
APART REGCALL long keeps_on(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l) {
    return twelve(a, b, c, d, e, f, g, h, i, j, k, l) + 1;
}
of_sixteen *volatile on = hands_on;
of_twelve *volatile keep = keeps_on;

APART long calls_by_pointer(const long *n, const double *v, double *sum) {
    *sum = sixteen(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11], v[12], v[13], v[14], v[15]);
    *sum += on(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11], v[12], v[13], v[14], v[15]) * 3;
    long s = twelve(n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11]);
    s += 5 * keep(n[11], n[10], n[9], n[8], n[7], n[6], n[5], n[4], n[3], n[2], n[1], n[0]);
    return s;
}

int main(void) {
    long n[12];
    double v[16], sum;
    for (int i = 0; i < 12; i++) n[i] = i * 37 + 5;
    for (int i = 0; i < 16; i++) v[i] = i * 1.25 - 3;
    for (int round = 0; round < 3; round++) {
        n[round] += 11;
        v[15 - round] *= 1.5;
        long s = calls_by_pointer(n, v, &sum);
        printf("%ld %g\n", s, sum);
    }
}
