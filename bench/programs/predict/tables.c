// Hash tables, histograms, gathers and joins: places that data decide.
#include "case.h"

enum { MANY = 1 << 22, FEW = 1 << 20 };

struct slot {
    uint64_t key, value;
    char rest[LINE - 16];
};

static struct slot *table;
static size_t slots;
static uint64_t *data, *words;
static uint32_t *index32, *counters;

static void make_table(size_t bytes) {
    table = area(bytes);
    slots = bytes / sizeof *table;
    for (size_t i = 0; i < slots; i++)
        table[i] = (struct slot){.key = i, .value = i ^ 5};
}

static inline struct slot *found(uint64_t key) { return &table[mixed(key) & (slots - 1)]; }

static uint64_t lookups(void) {
    uint64_t sum = 0;
    for (uint64_t key = 0; key < MANY; key++)
        sum += found(key)->value;
    return sum;
}

static uint64_t dependent_lookups(void) {
    uint64_t key = 1;
    for (uint64_t i = 0; i < FEW; i++)
        key += found(key)->value | 1;
    return key;
}

static uint64_t histogram(void) {
    for (size_t i = 0; i < MANY; i++)
        counters[index32[i]]++;
    return counters[0];
}

static uint64_t gather(void) {
    uint64_t sum = 0;
    for (size_t i = 0; i < MANY; i++)
        sum += words[(size_t)index32[i] * 2];
    return sum;
}

static uint64_t scatter(void) {
    for (size_t i = 0; i < MANY; i++)
        words[(size_t)index32[i] * 2] = i;
    return words[0];
}

static uint64_t join(void) {
    uint64_t sum = 0;
    for (size_t i = 0; i < MANY; i++) {
        struct slot *s = found(data[i]);
        sum += s->key == data[i] ? s->value : 1;
    }
    return sum;
}

int main(void) {
    make_table(MIB(64));
    timed("hash table of 64 MiB", lookups, "rand(64M, n=4194304)");
    timed("hash table of 64 MiB, each key from the last value", dependent_lookups,
          "rand(64M, mlp=1, n=1048576)");
    make_table(MIB(1));
    timed("hash table of 1 MiB", lookups, "rand(1M, n=4194304)");
    timed("hash table of 1 MiB, each key from the last value", dependent_lookups,
          "rand(1M, mlp=1, n=1048576)");

    data = area(MANY * sizeof *data);
    for (size_t i = 0; i < MANY; i++)
        data[i] = random_number();
    make_table(MIB(32));
    timed("join with a table of 32 MiB", join, "seq(32M); rand(32M, n=4194304)");

    index32 = area(MANY * sizeof *index32);
    for (size_t i = 0; i < MANY; i++)
        index32[i] = random_number() % MANY;
    counters = area(MIB(16));
    memset(counters, 0, MIB(16));
    timed("histogram of 16 MiB", histogram, "seq(16M); rand(16M, n=4194304)");
    words = area(MIB(64));
    memset(words, 1, MIB(64));
    timed("gather from 64 MiB", gather, "seq(16M); rand(64M, n=4194304)");
    timed("scatter to 64 MiB", scatter, "seq(16M); rand(64M, n=4194304)");
    return 0;
}
