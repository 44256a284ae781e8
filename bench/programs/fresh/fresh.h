// What the fresh programs in C and C++ share: the sizes of the caches as the command line gives
// them (L1 L2 L3, in bytes), random numbers, and a clock that ends the work.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t l1_bytes = 32 << 10, l2_bytes = 1 << 20, l3_bytes = 32 << 20;
static double ends_at;

static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static inline void sizes(int argc, char **argv) {
    if (argc > 3) {
        l1_bytes = strtoull(argv[1], 0, 10);
        l2_bytes = strtoull(argv[2], 0, 10);
        l3_bytes = strtoull(argv[3], 0, 10);
    }
}

// More than the last cache holds, and not more than a small machine has.
static inline uint64_t dram_bytes(void) {
    uint64_t bytes = 2 * l3_bytes, most = 1ull << 30, least = 256ull << 20;
    return bytes > most ? most : bytes < least ? least : bytes;
}

// Far more than L2, and a part of L3.
static inline uint64_t middle_bytes(void) {
    uint64_t bytes = 3 * l2_bytes, most = l3_bytes / 4;
    return bytes > most ? most : bytes;
}

static inline void begin_work(double seconds) { ends_at = now() + seconds; }
static inline int goes_on(void) { return now() < ends_at; }

static uint64_t drawn = 88172645463325252ull;
static inline uint64_t draw(void) {
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    drawn ^= drawn << 17;
    return drawn;
}
