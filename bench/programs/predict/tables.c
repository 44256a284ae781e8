// Hash tables, histograms, gathers and joins: places that data decide.
#include "case.h"

enum { FEW = 1 << 20, MANY = 1 << 22, COUNTED = 2000 };

struct slot {
    uint64_t key, value;
    char rest[LINE - 16];
};

static struct slot *table;
static size_t slots, many;
static uint64_t *data, *words;
static uint32_t *index32, *counters;

static void make_table(size_t bytes) {
    table = huge_area(bytes);
    slots = bytes / sizeof *table;
    for (size_t i = 0; i < slots; i++)
        table[i] = (struct slot){.key = i, .value = i ^ 5};
}

static inline struct slot *found(uint64_t key) { return &table[mixed(key) & (slots - 1)]; }

static uint64_t lookups(void) {
    uint64_t sum = 0;
    for (uint64_t key = 0; key < many; key++)
        sum += found(key)->value;
    return sum;
}

static uint64_t dependent_lookups(void) {
    uint64_t key = 1;
    for (uint64_t i = 0; i < many; i++)
        key += found(key)->value | 1;
    return key;
}

static uint64_t join(void) {
    uint64_t sum = 0;
    for (size_t i = 0; i < many; i++) {
        struct slot *s = found(data[i]);
        sum += s->key == data[i] ? s->value : 1;
    }
    return sum;
}

static uint64_t histogram(void) {
    for (size_t i = 0; i < many; i++)
        counters[index32[i]]++;
    return counters[0];
}

static uint64_t gather(void) {
    uint64_t sum = 0;
    for (size_t i = 0; i < many; i++)
        sum += words[(size_t)index32[i] * 2];
    return sum;
}

static uint64_t scatter(void) {
    for (size_t i = 0; i < many; i++)
        words[(size_t)index32[i] * 2] = i;
    return words[0];
}

// Places below `places`, all in huge pages.
static void make_places(size_t places) {
    for (size_t i = 0; i < MANY; i++)
        index32[i] = random_number() % places;
    counters = huge_area(places * sizeof *counters);
    words = huge_area(places * 2 * sizeof *words);
    memset(counters, 0, places * sizeof *counters);
    memset(words, 1, places * 2 * sizeof *words);
}

// What an access takes where its place is in the nearest cache, and its instructions.
struct cost {
    double ns, instructions;
};

static struct cost cost(body small, size_t accesses) {
    many = accesses;
    double ns = work(small, many);
    many = COUNTED;
    struct cost all = {ns, instructions(small, many)};
    many = accesses;
    return all;
}

int main(void) {
    index32 = huge_area(MANY * sizeof *index32);
    data = huge_area(MANY * sizeof *data);
    for (size_t i = 0; i < MANY; i++)
        data[i] = random_number();

    make_table(SMALL);
    struct cost c = cost(lookups, MANY), dependent = cost(dependent_lookups, FEW), joined = cost(join, MANY);
    make_table(MIB(64));
    many = MANY;
    timed("hash table of 64 MiB", lookups, "rand(64M, n=4194304, work=%.2fns, instructions=%.1f)", c.ns,
          c.instructions);
    many = FEW;
    timed("hash table of 64 MiB, each key from the last value", dependent_lookups,
          "rand(64M, mlp=1, n=1048576, work=%.2fns)", dependent.ns);
    make_table(MIB(1));
    many = MANY;
    timed("hash table of 1 MiB", lookups, "rand(1M, n=4194304, work=%.2fns, instructions=%.1f)", c.ns,
          c.instructions);
    many = FEW;
    timed("hash table of 1 MiB, each key from the last value", dependent_lookups,
          "rand(1M, mlp=1, n=1048576, work=%.2fns)", dependent.ns);
    make_table(MIB(32));
    many = MANY;
    timed("join with a table of 32 MiB", join,
          "seq(32M) & rand(32M, n=4194304, work=%.2fns, instructions=%.1f)", joined.ns, joined.instructions);

    make_places(SMALL / sizeof *counters);
    struct cost counted = cost(histogram, MANY);
    make_places(SMALL / sizeof *words / 2);
    struct cost read = cost(gather, MANY), written = cost(scatter, MANY);
    make_places(MANY);
    timed("histogram of 16 MiB", histogram,
          "seq(16M) & rmw(16M, n=4194304, work=%.2fns, instructions=%.1f)", counted.ns, counted.instructions);
    timed("gather from 64 MiB", gather, "seq(16M) & rand(64M, n=4194304, work=%.2fns, instructions=%.1f)",
          read.ns, read.instructions);
    // The core does not wait for stores before it looks further ahead.
    timed("scatter to 64 MiB", scatter, "seq(16M) & rmw(64M, n=4194304, work=%.2fns)", written.ns);
    return 0;
}
