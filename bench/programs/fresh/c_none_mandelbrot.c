// expect: memory=no
// The Mandelbrot set: floating-point arithmetic, and a row of results.
#include "fresh.h"

static uint8_t row[1024];

__attribute__((noinline)) static void line(double y) {
    for (int at = 0; at < 1024; at++) {
        double cr = at / 400.0 - 2, ci = y, r = 0, i = 0;
        int n = 0;
        for (; n < 200 && r * r + i * i < 4; n++) {
            double next = r * r - i * i + cr;
            i = 2 * r * i + ci;
            r = next;
        }
        row[at] = n;
    }
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    begin_work(2);
    for (int at = 0; goes_on(); at = (at + 1) % 500)
        line(at / 250.0 - 1);
    printf("%d\n", row[3] > 0);
}
