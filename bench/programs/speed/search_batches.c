// Binary search, eight keys at a time: each step of all of them before the next one.
#include "common.h"

__attribute__((noinline)) static uint64_t search(const uint64_t *sorted, size_t size, const uint64_t *keys) {
    const uint64_t *at[8];
    for (int i = 0; i < 8; i++) at[i] = sorted;
    for (size_t half = size / 2; half; half /= 2) {
        for (int i = 0; i < 8; i++) {
#ifdef BY_HAND
            FETCH(at[i] + half / 2);
            FETCH(at[i] + half + half / 2);
#endif
            if (at[i][half] <= keys[i]) at[i] += half;
        }
    }
    uint64_t sum = 0;
    for (int i = 0; i < 8; i++) sum += *at[i];
    return sum;
}

int main(int argc, char **argv) {
    size_t size = entries(argc, argv, 26);
    uint64_t *sorted = memory(size * 8), keys[8], sum = 0;
    for (size_t i = 0; i < size; i++) sorted[i] = i * 3;
    for (int round = 0; round < 250000; round++) {
        for (int i = 0; i < 8; i++) keys[i] = random_number() % (size * 3);
        sum += search(sorted, size, keys);
    }
    printf("%lu\n", sum);
}
