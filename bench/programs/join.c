// Probes a hash table with chains: the bucket's line, then each entry's.
#include "common.h"

enum { BATCH = 1024 };

struct entry {
    struct entry *next;
    uint64_t key, value, unused[5];
};

static inline size_t slot_of(uint64_t key, size_t mask) {
    return (key * 0x9e3779b97f4a7c15ull >> 20) & mask;
}

__attribute__((noinline)) static uint64_t probe(struct entry *const *table, size_t mask, const uint64_t *keys, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        for (const struct entry *e = table[slot_of(keys[i], mask)]; e; e = e->next)
            if (e->key == keys[i]) {
                sum += e->value;
                break;
            }
    return sum;
}

int main(int argc, char **argv) {
    struct arguments a = arguments(argc, argv);
    size_t entries = (a.mib << 20) / (sizeof(struct entry) + sizeof(void *)), slots = 1;
    while (slots * 2 <= entries)
        slots *= 2;
    struct entry **table = area(slots * sizeof *table), *pool = area(entries * sizeof *pool);
    for (size_t i = 0; i < entries; i++) {
        struct entry **slot = &table[slot_of(i, slots - 1)];
        pool[i] = (struct entry){*slot, i, i ^ 0x55};
        *slot = &pool[i];
    }
    uint64_t keys[BATCH], done = 0, sum = 0;
    while (goes_on(done, a.work)) {
        for (int i = 0; i < BATCH; i++)
            keys[i] = random_number() % (entries + entries / 4); // a fifth is not there
        sum += probe(table, slots - 1, keys, BATCH);
        done += BATCH;
    }
    if (a.work)
        printf("join %zu MiB, %lu probes, sum %lu\n", a.mib, done, sum);
    return 0;
}
