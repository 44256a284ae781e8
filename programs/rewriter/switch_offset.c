// A switch over a 64-bit number that begins below zero: the index is what remains after a
// subtraction, and values that agree only in their low halves must not find a case.
//# twins: choose
#include <stdio.h>

__attribute__((noinline)) long choose(long x) {
    switch (x) {
    case -5: return puts("-5") > 0;
    case -4: return 3;
    case -3: return (puts("-3") > 0) + 8;
    case -2: return 9;
    case -1: return (puts("-1") > 0) + 4;
    case 0: return 1;
    case 1: return (puts("1") > 0) + 2;
    default: return 1000 + x;
    }
}
int main(void) {
    for (long i = -8; i < 5; i++) printf("%ld %ld\n", i, choose(i));
    printf("%ld %ld\n", choose(0x100000001L), choose(-0x100000003L));
}
