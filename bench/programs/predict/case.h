// What the programs of `bench/predict.sh` share. Each program has several cases; each case states
// the access pattern that it has, as `gleaner predict` reads it, and is timed by the program.
//
// A line for each case on standard output: name, nanoseconds (the median of the rounds), those of
// the fastest and the slowest round, pattern; with tabs between them.
#include "../common.h"
#include <string.h>

enum { LINE = 64, ROUNDS = 7 };

#define MIB(n) ((size_t)(n) << 20)

// What a case found: a compiler must not leave it out.
static volatile uint64_t answer;

typedef uint64_t (*body)(void);

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// The first round brings the memory into the state that passes before leave, and is not counted.
static void timed(const char *name, body once, const char *pattern) {
    uint64_t times[ROUNDS];
    answer += once();
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t begin = now_ns();
        answer += once();
        times[i] = now_ns() - begin;
    }
    qsort(times, ROUNDS, sizeof *times, by_size);
    printf("%s\t%lu\t%lu\t%lu\t%s\n", name, times[ROUNDS / 2], times[0], times[ROUNDS - 1], pattern);
    fflush(stdout);
}

// A cheap mix of all bits, for hashes and for keys in no order.
static inline uint64_t mixed(uint64_t x) {
    x *= 0x9e3779b97f4a7c15;
    return x ^ x >> 32;
}
