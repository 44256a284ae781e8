// More zeroed memory than anybody makes a hole for in a file: what is new lies far behind the rest,
// and is found there by the kernel.
//# twins: fill
#include <stdio.h>

enum { SIZE = 80 << 20, STEP = 4 << 20 };
static unsigned char zeroed[SIZE];

__attribute__((noinline)) unsigned fill(unsigned from) {
    unsigned sum = 0;
    for (unsigned at = from; at < SIZE; at += STEP) {
        sum += zeroed[at];
        zeroed[at] = (unsigned char)(at >> 22) + 1;
    }
    return sum;
}
int main(void) {
    printf("%u\n", fill(3));
    printf("%u\n", fill(3));
    printf("%u\n", fill(SIZE - 1));
}
