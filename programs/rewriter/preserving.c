// clang's conventions whose callees keep much (preserve_most, preserve_all), whose callees keep
// nothing (preserve_none, where the compiler has it: arguments in r12 to r15, handed on by jumps),
// and vectorcall, by pointers.
//# compilers: clang
//# twins: most all most_through most_slow all_through keeps_vectors push add turn runs
#include <stdio.h>

#define APART __attribute__((noinline))
#if __has_attribute(preserve_none)
#define NONE __attribute__((preserve_none))
#define MUST_TAIL __attribute__((musttail))
#else
#define NONE
#define MUST_TAIL
#endif

typedef __attribute__((preserve_most)) void of_most(long *);
typedef __attribute__((preserve_all)) void of_all(double *);
struct four { double a, b, c, d; };
typedef __attribute__((vectorcall)) struct four of_vectors(struct four, struct four, double);

APART __attribute__((preserve_most)) void most(long *p) { *p = *p * 3 + 1; }
APART __attribute__((preserve_all)) void all(double *p) { *p = *p * 0.5 + 1; }
APART __attribute__((vectorcall)) struct four vectors(struct four a, struct four b, double c) {
    struct four r = {a.a + b.d * c, a.b - b.c, a.c * b.b, a.d + b.a - c};
    return r;
}
of_most *volatile by_most = most;
of_all *volatile by_all = all;
// What they call in turn: by a pointer what keeps as much, in view what keeps nothing, on a slow
// path.
APART long slow(long *p) { long a = p[0] * 5, b = a ^ 3, c = b + a * 7; return a + b * c - (c >> 2); }
APART __attribute__((preserve_most)) void most_through(long *p) { by_most(p); *p += 2; by_most(p); }
APART __attribute__((preserve_most)) void most_slow(long *p) { if (*p % 3) *p += 4; else *p = slow(p); }
APART __attribute__((preserve_all)) void all_through(double *p) { by_all(p); *p *= 0.5; }
of_most *volatile by_most_through = most_through, *volatile by_most_slow = most_slow;
of_all *volatile by_all_through = all_through;
of_vectors *volatile by_vectors = vectors;

APART double keeps_vectors(const double *v, long n) {
    double a = v[0], b = v[1], c = v[2], d = v[3], e = v[4], f = v[5];
    long g = n, h = n * 3, i = n + 7, j = n ^ 5;
    for (long k = 0; k < n; k++) {
        a += v[k]; c -= b; e += f * d;
        by_all(&a);
        by_most(&g);
        by_all_through(&a);
        by_most_through(&g);
        by_most_slow(&g);
        h += i; i ^= j; j += k;
        b += c * 0.25; d += e * 0.125; f -= d * 0.5;
    }
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + g + h + i + j;
}

// An interpreter whose instructions jump to each other, as Python's.
struct machine { const unsigned char *code; long *stack; };
typedef NONE long operation(struct machine *, const unsigned char *, long *, long, long, long, long, long);
extern operation *const table[];
#define NEXT MUST_TAIL return table[*at](m, at + 1, stack, a, b, c, d, e)
#define OPERATION(name) NONE APART long name(struct machine *m, const unsigned char *at, long *stack, long a, long b, long c, long d, long e)
OPERATION(push) { *stack++ = a + *at++; NEXT; }
OPERATION(add) { stack--; stack[-1] += stack[0] + b; NEXT; }
OPERATION(turn) { long t = a; a = b; b = c; c = d; d = e + stack[-1]; e = t; NEXT; }
OPERATION(stop) { return stack[-1] + a + 2 * b + 3 * c + 4 * d + 5 * e + (m->code == at); }
operation *const table[] = {push, add, turn, stop};

APART long runs(const unsigned char *code) {
    long stack[16] = {0};
    struct machine m = {code, stack};
    return table[code[0]](&m, code + 1, stack + 1, 1, 2, 3, 4, 5);
}

int main(void) {
    double v[8];
    for (int i = 0; i < 8; i++) v[i] = i * 0.75 - 2;
    printf("%g\n", keeps_vectors(v, 8));
    struct four a = {1, 2, 3, 4}, b = {5, 6, 7, 8};
    for (int i = 0; i < 3; i++) a = by_vectors(a, b, v[i]);
    printf("%g %g %g %g\n", a.a, a.b, a.c, a.d);
    static const unsigned char code[] = {0, 9, 0, 4, 1, 2, 0, 7, 2, 1, 2, 3};
    printf("%ld\n", runs(code));
}
