// expect: memory=no
// Integer arithmetic, and nothing else.
#include "fresh.h"

int main(int argc, char **argv) {
    sizes(argc, argv);
    uint64_t most = 0, from = 1;
    begin_work(2);
    while (goes_on())
        for (int i = 0; i < 1000; i++, from++) {
            uint64_t n = from, steps = 0;
            while (n != 1) {
                n = n & 1 ? 3 * n + 1 : n / 2;
                steps++;
            }
            if (steps > most)
                most = steps;
        }
    printf("%d\n", most > 0);
}
