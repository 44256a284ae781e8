// Functions inside functions: the chain to the outer frame is in r10, and pointers to them lead to
// code on the stack.
//# compilers: gcc
//# twins: outer apply
#include <stdio.h>

__attribute__((noinline)) long apply(long (*f)(long), long n) {
    long sum = 0;
    for (long i = 0; i < n; i++) sum = sum * 3 % 1000003 + f(i);
    return sum;
}
__attribute__((noinline)) long outer(long a, long b) {
    long calls = 0;
    long inner(long x) {
        calls++;
        return x * a + b;
    }
    long through = apply(inner, 20);
    long direct = inner(5) + inner(6);
    return through + direct * 7 + calls;
}
int main(void) {
    for (long i = 1; i < 4; i++) printf("%ld\n", outer(i, i * i));
}
