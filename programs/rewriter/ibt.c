// Indirect branch tracking: every target of an indirect call or jump begins with endbr64, and so
// does every entry.
//# flags: -fcf-protection=full
//# twins: choose call early
#include <stdio.h>
#include <stdlib.h>

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
__attribute__((noinline)) int twice(int x) { return x * 2; }
__attribute__((noinline)) int less(int x) { return x - 1; }
static int (*volatile table[])(int) = {twice, less, twice};
__attribute__((noinline)) int call(unsigned i, int x) { return table[i % 3](x) + 5; }
__attribute__((noinline)) int early(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(void) {
    int values[8];
    for (int i = 0; i < 8; i++) values[i] = choose(i, call(i, i * 7)) % 1000;
    qsort(values, 8, sizeof *values, early);
    for (int i = 0; i < 8; i++) printf("%d ", values[i]);
    puts("");
}
