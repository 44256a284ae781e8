// Counts, and touches no memory while it does: a guest that never waits, and gives way only where
// it has to.
#include "common.h"

enum { BATCH = 1 << 16 };

__attribute__((noinline)) static uint64_t count(uint64_t n) {
    for (int i = 0; i < BATCH; i++)
        __asm__ volatile("" : "+r"(n));
    return n + BATCH;
}

int main(int argc, char **argv) {
    struct arguments a = arguments(argc, argv);
    uint64_t done = 0;
    while (goes_on(done, a.work))
        done = count(done);
    if (a.work)
        printf("idle, %lu rounds\n", done);
    return 0;
}
