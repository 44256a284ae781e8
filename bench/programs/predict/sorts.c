// Sorts: passes over arrays, whose comparisons and counts cost besides.
#include "case.h"

enum { COUNT = 1 << 22, DIGITS = 256 };

static uint32_t *unsorted, *from, *to;

static uint64_t merge_sort(void) {
    memcpy(from, unsorted, COUNT * sizeof *from);
    for (size_t run = 1; run < COUNT; run *= 2) {
        for (size_t at = 0; at < COUNT; at += 2 * run) {
            size_t a = at, b = at + run, out = at;
            while (a < at + run && b < at + 2 * run) {
                int left = from[a] <= from[b];
                to[out++] = left ? from[a] : from[b];
                a += left, b += !left;
            }
            while (a < at + run)
                to[out++] = from[a++];
            while (b < at + 2 * run)
                to[out++] = from[b++];
        }
        uint32_t *t = from;
        from = to, to = t;
    }
    return from[1];
}

static uint64_t radix_sort(void) {
    memcpy(from, unsorted, COUNT * sizeof *from);
    for (int shift = 0; shift < 32; shift += 8) {
        size_t place[DIGITS] = {0}, sum = 0;
        for (size_t i = 0; i < COUNT; i++)
            place[from[i] >> shift & 255]++;
        for (int digit = 0; digit < DIGITS; digit++) {
            size_t here = place[digit];
            place[digit] = sum, sum += here;
        }
        for (size_t i = 0; i < COUNT; i++)
            to[place[from[i] >> shift & 255]++] = from[i];
        uint32_t *t = from;
        from = to, to = t;
    }
    return from[1];
}

int main(void) {
    unsorted = area(COUNT * sizeof *unsorted);
    from = area(COUNT * sizeof *from);
    to = area(COUNT * sizeof *to);
    for (size_t i = 0; i < COUNT; i++)
        unsorted[i] = random_number();
    memset(to, 0, COUNT * sizeof *to);
    timed("merge sort of 16 MiB", merge_sort, "23 * seq(32M, op=copy)");
    timed("radix sort of 16 MiB", radix_sort, "5 * seq(32M, op=copy); 4 * seq(16M)");
    return 0;
}
