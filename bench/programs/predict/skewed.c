// Skewed keys: few of them come often, and most hardly ever.
#include "case.h"
#include <math.h>

enum { KEYS = 1 << 20, COUNTED = 2000 };

struct slot {
    uint64_t value, nothing;
    char rest[LINE - 16];
};

static struct slot *table;
static uint32_t *drawn;
static size_t many;

// Keys of a Zipf distribution over all slots, whose hot ones lie anywhere.
static void make(size_t bytes, double skew) {
    const size_t slots = bytes / sizeof *table;
    double *until = malloc(slots * sizeof *until), sum = 0;
    uint32_t *place = malloc(slots * sizeof *place);
    for (size_t i = 0; i < slots; i++)
        until[i] = sum += pow(i + 1, -skew);
    one_cycle(place, slots);
    for (size_t i = 0; i < KEYS; i++) {
        double at = sum * (random_number() >> 11) / (double)(1ull << 53);
        size_t low = 0;
        for (size_t left = slots; left > 1; left -= left / 2)
            low += (until[low + left / 2 - 1] <= at) * (left / 2);
        drawn[i] = place[low];
    }
    table = huge_area(bytes);
    for (size_t i = 0; i < slots; i++)
        table[i] = (struct slot){.value = i};
    free(place);
    free(until);
}

static uint64_t lookups(void) {
    uint64_t sum = 0;
    for (size_t i = 0; i < many; i++)
        sum += table[drawn[i]].value;
    return sum;
}

// Each place needs the slot before, which adds nothing to it.
static uint64_t dependent_lookups(void) {
    uint64_t sum = 0, nothing = 0;
    for (size_t i = 0; i < many; i++) {
        const struct slot *s = &table[drawn[i] + nothing];
        sum += s->value;
        nothing = s->nothing;
    }
    return sum;
}

static uint64_t counts(void) {
    for (size_t i = 0; i < many; i++)
        table[drawn[i]].value++;
    return table[0].value;
}

struct cost {
    double ns, instructions;
};

static struct cost cost(body small) {
    many = KEYS;
    double ns = work(small, many);
    many = COUNTED;
    struct cost all = {ns, instructions(small, many)};
    many = KEYS;
    return all;
}

int main(void) {
    drawn = huge_area(KEYS * sizeof *drawn);
    make(SMALL, 0);
    struct cost c = cost(lookups), counted = cost(counts);
    double in_turn = work(dependent_lookups, KEYS);
    make(MIB(64), 0.99);
    timed("table of 64 MiB, keys of Zipf 0.99", lookups,
          "rand(64M, zipf=0.99, n=1048576, work=%.2fns, instructions=%.1f) & seq(4M)", c.ns, c.instructions);
    timed("table of 64 MiB, keys of Zipf 0.99, in turn", dependent_lookups,
          "rand(64M, zipf=0.99, mlp=1, n=1048576, work=%.2fns) & seq(4M)", in_turn);
    timed("counts in 64 MiB, keys of Zipf 0.99", counts,
          "rmw(64M, zipf=0.99, n=1048576, work=%.2fns, instructions=%.1f) & seq(4M)", counted.ns,
          counted.instructions);
    make(MIB(64), 0.5);
    timed("table of 64 MiB, keys of Zipf 0.5, in turn", dependent_lookups,
          "rand(64M, zipf=0.5, mlp=1, n=1048576, work=%.2fns) & seq(4M)", in_turn);
    return 0;
}
