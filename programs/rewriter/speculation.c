// Hardened against speculation: behind each call it is looked whether the word below the stack is
// the call's return address.
//# compilers: clang
//# flags: -mspeculative-load-hardening
//# twins: leaf
//# refused: main reads_own_address
#include <stdio.h>

static int table[64];
__attribute__((noinline)) int leaf(int n) { return table[n & 63] + 1; }
__attribute__((noinline)) int calls(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += leaf(leaf(i)) * table[i & 63];
    return sum;
}
int main(int argc, char **argv) {
    (void)argv;
    for (int i = 0; i < 64; i++)
        table[i] = i * 37 % 64;
    printf("%d %d\n", calls(100), leaf(argc));
}
