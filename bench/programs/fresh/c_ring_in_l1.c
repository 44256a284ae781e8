// expect: load=turn data=site level=L1 memory=yes
// A ring of 8 KiB, each of whose elements says where the next one is.
#include "fresh.h"

__attribute__((noinline)) static uint32_t turn(const uint32_t *ring, uint32_t at, long steps) {
    while (steps--)
        at = ring[at]; // HOT
    return at;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    enum { COUNT = 2048 };
    uint32_t *ring = malloc(COUNT * sizeof *ring); // DATA
    for (uint32_t i = 0; i < COUNT; i++)
        ring[i] = (i * 1664525u + 1013904223u) % COUNT;
    uint32_t at = 0;
    begin_work(2);
    while (goes_on())
        at = turn(ring, at, 10000);
    printf("%d\n", at < COUNT);
}
