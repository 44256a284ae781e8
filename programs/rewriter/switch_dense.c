// A dense switch, of which every compiler makes a table: with holes, fall-through, and a default
// before and behind it.
//# twins: choose
#include <stdio.h>

__attribute__((noinline)) int choose(int x) {
    switch (x) {
    case 0: return 10;
    case 1: return puts("one") > 0;
    case 2: return 77;
    case 3: puts("three"); // fall through
    case 4: return 44;
    case 6: return (puts("six") > 0) + x;
    case 7: return -6;
    case 8: return x * x;
    default: return -1;
    }
}
int main(void) {
    for (int i = -3; i < 12; i++) printf("%d %d\n", i, choose(i));
}
