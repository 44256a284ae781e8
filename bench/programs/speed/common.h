// What the kernels share: random numbers, and how far ahead the hand-written variant fetches.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_state = 88172645463325252ul;

static inline uint64_t random_number(void) {
    uint64_t x = random_state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return random_state = x;
}

static void *memory(size_t bytes) {
    void *block = malloc(bytes);
    if (!block) exit(1);
    return block;
}

// The first argument makes the data smaller: 2^that entries; without it as much as misses.
static inline size_t entries(int argc, char **argv, int usual) {
    return (size_t)1 << (argc > 1 ? atoi(argv[1]) : usual);
}

#ifdef BY_HAND
#define AHEAD 32
#define FETCH(address) __builtin_prefetch(address)
#else
#define AHEAD 0
#define FETCH(address) ((void)0)
#endif
