#include "common.h"

struct bucket {
    uint32_t keys[SLOTS];
    uint32_t values[SLOTS];
};

static inline size_t hash(uint32_t key) { return ((uint64_t)key * 0x9e3779b97f4a7c15ul) >> 20; }

__attribute__((noinline)) static uint64_t probe(const struct bucket *table, const uint32_t *keys, size_t number,
                                                size_t mask) {
    uint64_t sum = 0;
    for (size_t i = 0; i < number; i++) {
#ifdef BY_HAND
        FETCH(&table[hash(keys[i + AHEAD]) & mask]);
#endif
        const struct bucket *bucket = &table[hash(keys[i]) & mask];
        for (int slot = 0; slot < SLOTS; slot++) {
            if (bucket->keys[slot] == keys[i]) {
                sum += bucket->values[slot];
                break;
            }
        }
    }
    return sum;
}

int main(int argc, char **argv) {
    size_t buckets = entries(argc, argv, SLOTS == 2 ? 25 : 23), number = 1 << 22;
    struct bucket *table = memory(buckets * sizeof *table);
    uint32_t *keys = memory((number + 64) * 4);
    memset(table, 0, buckets * sizeof *table);
    for (size_t i = 0; i < number; i++) {
        uint32_t key = random_number() | 1;
        struct bucket *bucket = &table[hash(key) & (buckets - 1)];
        int slot = random_number() % SLOTS;
        bucket->keys[slot] = key;
        bucket->values[slot] = (uint32_t)i;
        keys[i] = key;
    }
    for (size_t i = number; i < number + 64; i++) keys[i] = random_number();
    uint64_t sum = 0;
    for (int round = 0; round < 6; round++) sum += probe(table, keys, number, buckets - 1);
    printf("%lu\n", sum);
}
