// What the chasing peers share: time, random numbers, and an order that is one cycle.
#include <stddef.h>
#include <stdint.h>
#include <time.h>

static inline double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static uint64_t state = 88172645463325252ull;
static inline uint64_t random_below(uint64_t n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % n;
}

// order[i] is what follows i; all of them are one cycle (Sattolo).
static inline void one_cycle(uint32_t *order, size_t nodes) {
    for (size_t i = 0; i < nodes; i++)
        order[i] = i;
    for (size_t i = nodes - 1; i > 0; i--) {
        size_t j = random_below(i);
        uint32_t t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}
