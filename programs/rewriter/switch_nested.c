// Switches inside switches: several tables in one function, each with its own bounds.
//# twins: choose
#include <stdio.h>

__attribute__((noinline)) int choose(unsigned a, unsigned b) {
    switch (a) {
    case 0:
        switch (b) {
        case 0: return 1;
        case 1: return puts("01") > 0;
        case 2: return 5;
        case 3: return 8;
        case 4: return (puts("04") > 0) + 1;
        default: return 2;
        }
    case 1: return (puts("1x") > 0) + 40;
    case 2: return 12;
    case 3:
        switch (b) {
        case 0: return (puts("30") > 0) + 50;
        case 1: return 31;
        case 2: return (puts("32") > 0) + 60;
        case 3: return 33;
        case 4: return 34;
        default: return 35;
        }
    case 4: return 13;
    default: return 14;
    }
}
int main(void) {
    for (unsigned a = 0; a < 6; a++)
        for (unsigned b = 0; b < 6; b++) printf("%d ", choose(a, b));
    puts("");
}
