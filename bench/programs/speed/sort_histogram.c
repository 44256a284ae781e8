// Integer sort: how often each key occurs, keys in any order.
#include "common.h"

__attribute__((noinline)) static void count(uint32_t *counts, const uint32_t *keys, size_t number) {
    for (size_t i = 0; i < number; i++) {
#ifdef BY_HAND
        FETCH(&counts[keys[i + AHEAD]]);
#endif
        counts[keys[i]]++;
    }
}

int main(int argc, char **argv) {
    size_t buckets = entries(argc, argv, 26), number = 1 << 22;
    uint32_t *counts = memory(buckets * 4), *keys = memory((number + 64) * 4);
    memset(counts, 0, buckets * 4);
    for (size_t i = 0; i < number + 64; i++) keys[i] = random_number() & (buckets - 1);
    for (int round = 0; round < 16; round++) count(counts, keys, number);
    uint64_t sum = 0;
    for (size_t i = 0; i < buckets; i++) sum = sum * 31 + counts[i];
    printf("%lu\n", sum);
}
