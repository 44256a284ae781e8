// Retpolines: indirect calls and jumps as returns through a thunk that rewrites its own return
// address.
//# flags-gcc: -mindirect-branch=thunk -mfunction-return=keep -fcf-protection=none
//# flags-clang: -mretpoline
//# twins: call choose
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) int twice(int x) { return x * 2; }
__attribute__((noinline)) int less(int x) { return x - 1; }
static int (*volatile table[])(int) = {twice, less, twice};
__attribute__((noinline)) int call(unsigned i, int x) { return table[i % 3](x) + 5; }
__attribute__((noinline)) int last(unsigned i, int x) { return table[i % 3](x + 3); }
__attribute__((noinline)) int choose(int x, int y) {
    switch (x) {
    case 0: return y + 1;
    case 1: return y * 3 + (puts("one") > 0);
    case 2: return y ^ 77;
    case 3: return y - (puts("three") > 0);
    case 4: return y << 2;
    case 5: return ~y;
    default: return 0;
    }
}
int main(void) {
    for (int i = 0; i < 8; i++) printf("%d %d\n", choose(i, call(i, i * 7)), last(i, i));
}
