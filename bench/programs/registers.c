// Follows a cycle through 16 KiB, which the first cache holds, with ALIVE values live in registers
// meanwhile: compiled with -DALIVE=0 to 8, beside the pointer and the count.
#include "common.h"

enum { LINE = 64, LINES = 256, BATCH = 4096 };
#ifndef ALIVE
#define ALIVE 0
#endif

// Each value changes at every step, so it lives across the load.
__attribute__((noinline)) static void **chase(void **p, long loads, uint64_t *values) {
#define LIVE(n) uint64_t v##n = values[n];
#define STEP(n) __asm__ volatile("inc %0" : "+r"(v##n));
#define KEEP(n) values[n] = v##n;
#if ALIVE == 0
#define ALL(F)
#elif ALIVE == 1
#define ALL(F) F(0)
#elif ALIVE == 2
#define ALL(F) F(0) F(1)
#elif ALIVE == 3
#define ALL(F) F(0) F(1) F(2)
#elif ALIVE == 4
#define ALL(F) F(0) F(1) F(2) F(3)
#elif ALIVE == 6
#define ALL(F) F(0) F(1) F(2) F(3) F(4) F(5)
#else
#define ALL(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)
#endif
    ALL(LIVE)
    while (loads--) {
        p = *p;
        ALL(STEP)
    }
    ALL(KEEP)
    return p;
}

int main(int argc, char **argv) {
    struct arguments a = arguments(argc, argv);
    char *base = area(LINE * LINES);
    uint32_t order[LINES];
    uint64_t values[8] = {0};
    one_cycle(order, LINES);
    for (size_t i = 0; i < LINES; i++)
        *(void **)(base + i * LINE) = base + (size_t)order[i] * LINE;
    void **p = (void **)base;
    uint64_t done = 0;
    while (goes_on(done, a.work)) {
        p = chase(p, BATCH, values);
        done += BATCH;
    }
    if (a.work)
        printf("registers %d, %lu loads, %lu\n", ALIVE, done, values[0]);
    return p == 0;
}
