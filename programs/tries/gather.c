/* Adds up what an array is indexed by, and branches on what it finds.
 *
 * Faster with prefetches: each value is a miss, the branch keeps the core from looking far ahead,
 * and the indices of later stand beside that of now. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define INDICES (1 << 22)
#define VALUES (1 << 24)

__attribute__((noinline, noclone)) static unsigned long
sum(const uint32_t *index, const uint64_t *value, long from, long to)
{
    unsigned long even = 0, odd = 1;
    for (long i = from; i < to; i++) {
        uint64_t v = value[index[i]];
        if (v & 1) {
            odd = odd * 31 + v;
            odd ^= odd >> 7;
        } else {
            even += v / 3;
            even ^= odd << 3;
        }
    }
    return even ^ odd;
}

int main(void)
{
    uint32_t *index = malloc(INDICES * sizeof *index);
    uint64_t *value = malloc(VALUES * sizeof *value);
    uint64_t x = 88172645463325252UL;
    for (long i = 0; i < VALUES; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        value[i] = x;
    }
    for (long i = 0; i < INDICES; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        index[i] = x % VALUES;
    }
    unsigned long all = 0;
    for (int round = 0; round < 10; round++)
        for (long i = 0; i < INDICES; i += 4096)
            all += sum(index, value, i, i + 4096);
    printf("%lu\n", all);
    return 0;
}
