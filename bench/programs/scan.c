// Sums an array from one end to the other, again and again: prefetchers do well, bandwidth is what
// counts.
#include "common.h"

enum { BATCH = 4096 };

__attribute__((noinline)) static uint64_t sum(const uint64_t *words, size_t count) {
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += words[i];
    return total;
}

int main(int argc, char **argv) {
    struct arguments a = arguments(argc, argv);
    size_t words = (a.mib << 20) / sizeof(uint64_t), at = 0;
    uint64_t *array = area(a.mib << 20);
    for (size_t i = 0; i < words; i++)
        array[i] = random_number() >> 20;
    uint64_t total = 0, done = 0;
    while (goes_on(done, a.work)) {
        total += sum(array + at, BATCH);
        at = (at + BATCH) % words;
        done += BATCH;
    }
    if (a.work)
        printf("scan %zu MiB, %lu words, sum %lu\n", a.mib, done, total);
    return 0;
}
