// Code that asks where it is: by calling the next instruction, which keeps it from having a twin,
// and by lea, which does not.
//# twins: by_lea
//# refused: by_call reads_own_address
#include <stdio.h>

__attribute__((noinline)) long by_call(void) {
    long distance;
    __asm__("lea -128(%%rsp), %%rsp\n call 1f\n1: pop %0\n lea 128(%%rsp), %%rsp\n lea 1b(%%rip), %%rax\n sub %%rax, %0"
            : "=&r"(distance) : : "rax", "cc");
    return distance;
}
__attribute__((noinline)) long by_lea(long x) {
    long distance;
    __asm__("lea 1f(%%rip), %%rax\n lea by_lea(%%rip), %0\n sub %0, %%rax\n mov %%rax, %0\n1:" : "=r"(distance) : : "rax", "cc");
    return distance > 0 && distance < 200 ? x + 1 : -1;
}
int main(void) {
    printf("%ld %ld\n", by_call(), by_lea(41));
    return by_call() != 0;
}
