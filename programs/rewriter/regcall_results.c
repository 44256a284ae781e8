// clang's regcall, by pointers: results in registers in which the ABI returns none, handed back by
// a call of a pointer.
//# compilers: clang
//# twins: __regcall3__gives __regcall3__hands_back calls_by_pointer
#include <stdio.h>

#define REGCALL __attribute__((regcall))
#define APART __attribute__((noinline))

struct wide { long a, b, c, d, e, f, g, h; };
typedef REGCALL struct wide of_wide(long, long);

APART REGCALL struct wide gives(long a, long b) {
    struct wide w = {a, b, a + b, a - b, a * b, a ^ b, a & b, a | b};
    return w;
}
of_wide *volatile wide = gives;

APART REGCALL struct wide hands_back(long a, long b) {
    static volatile long calls;
    struct wide w = wide(a + 1, b + 2);
    calls++;
    return w;
}
of_wide *volatile back = hands_back;

static long sum(struct wide w) {
    return w.a + 2 * w.b + 3 * w.c + 4 * w.d + 5 * w.e + 6 * w.f + 7 * w.g + 8 * w.h;
}
APART long calls_by_pointer(const long *n) { return 100 * sum(wide(n[0], n[1])) + sum(back(n[2], n[3])); }

int main(void) {
    long n[4] = {5, 42, 79, 116};
    for (int round = 0; round < 3; round++) {
        n[round] += 11;
        printf("%ld\n", calls_by_pointer(n));
    }
}
