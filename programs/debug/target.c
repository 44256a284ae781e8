// What debuggers are tried on: a chain of calls that ends in a loop worth sampling.
#include <stdio.h>

static volatile unsigned sink;

__attribute__((noinline)) static unsigned spin(unsigned rounds) {
    unsigned value = 1;
    for (unsigned i = 0; i < rounds; i++) value = value * 1664525u + 1013904223u + (value >> 7);
    return value;
}

__attribute__((noinline)) static unsigned inner(unsigned depth, unsigned rounds) {
    unsigned result = depth ? inner(depth - 1, rounds) : spin(rounds);
    return result ^ depth;
}

__attribute__((noinline)) static unsigned outer(unsigned rounds) {
    unsigned result = inner(3, rounds);
    return result + 1;
}

int main(int argc, char **argv) {
    (void)argv;
    sink = outer(argc > 1 ? 400000000u : 10u);
    printf("%u\n", sink);
    return 0;
}
