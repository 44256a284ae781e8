// expect: load=count data=global:counters level=L3 memory=yes
// A histogram of random keys: counters of a static array that L2 does not hold.
#include "fresh.h"

enum { BINS = 3 << 19 };
static uint32_t counters[BINS];
static uint32_t keys[1 << 16];

__attribute__((noinline)) static void count(uint32_t salt) {
    for (int i = 0; i < 1 << 16; i++) {
        uint64_t key = (keys[i] ^ salt) * 2654435761u;
        counters[key * BINS >> 32]++; // HOT
    }
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    for (int i = 0; i < 1 << 16; i++)
        keys[i] = draw();
    begin_work(2);
    while (goes_on())
        count(draw());
    printf("%u\n", counters[3] & 1);
}
