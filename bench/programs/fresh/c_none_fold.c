// expect: memory=no
// Products of two small arrays, folded into the operations; one has a stride.
#include "fresh.h"

enum { COUNT = 600 };
static double a[COUNT], b[COUNT][4];

__attribute__((noinline)) static double dot(void) {
    double sum = 0;
    for (int i = 0; i < COUNT; i++)
        sum += a[i] * b[i][1];
    return sum;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    for (int i = 0; i < COUNT; i++)
        a[i] = i, b[i][1] = 1.0 / (i + 1);
    double sum = 0;
    begin_work(2);
    while (goes_on())
        for (int i = 0; i < 1000; i++) {
            a[i % COUNT] += 1e-9;
            sum += dot();
        }
    printf("%d\n", sum > 0);
}
