// Updates at places that a generator of random numbers gives, written down in batches.
#include "common.h"

__attribute__((noinline)) static void update(uint64_t *table, const uint64_t *batch, size_t number, size_t mask) {
    for (size_t i = 0; i < number; i++) {
#ifdef BY_HAND
        FETCH(&table[batch[i + AHEAD] & mask]);
#endif
        table[batch[i] & mask] ^= batch[i];
    }
}

int main(int argc, char **argv) {
    enum { BATCH = 4096 };
    size_t size = entries(argc, argv, 26);
    uint64_t *table = memory(size * 8), batch[BATCH + 64];
    for (size_t i = 0; i < size; i++) table[i] = i;
    for (int round = 0; round < 12000; round++) {
        for (int i = 0; i < BATCH + 64; i++) batch[i] = random_number();
        update(table, batch, BATCH, size - 1);
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < size; i++) sum = sum * 31 + table[i];
    printf("%lu\n", sum);
}
