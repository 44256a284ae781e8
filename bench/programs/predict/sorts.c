// Sorts: passes over arrays, whose comparisons and counts cost besides.
#include "case.h"

enum { COUNT = 1 << 22, MANY = 4000000, DIGITS = 256, FEW = 1024 };

static uint32_t *unsorted, *from, *to;
// What is sorted: `all` elements, in pieces of `count`.
static size_t all, count;

static void swap(void) {
    uint32_t *t = from;
    from = to, to = t;
}

static void merge_passes(void) {
    for (size_t run = 1; run < count; run *= 2) {
        for (size_t at = 0; at < count; at += 2 * run) {
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
        swap();
    }
}

static void radix_passes(void) {
    for (int shift = 0; shift < 32; shift += 8) {
        size_t place[DIGITS] = {0}, sum = 0;
        for (size_t i = 0; i < count; i++)
            place[from[i] >> shift & 255]++;
        for (int digit = 0; digit < DIGITS; digit++) {
            size_t here = place[digit];
            place[digit] = sum, sum += here;
        }
        for (size_t i = 0; i < count; i++)
            to[place[from[i] >> shift & 255]++] = from[i];
        swap();
    }
}

static uint64_t pieces(void (*sort)(void)) {
    for (size_t piece = 0; piece + count <= all; piece += count) {
        memcpy(from, unsorted + piece, count * sizeof *from);
        sort();
    }
    return from[1];
}

static void nothing(void) {}
static uint64_t copies(void) { return pieces(nothing); }
static uint64_t merge_sort(void) { return pieces(merge_passes); }
static uint64_t radix_sort(void) { return pieces(radix_passes); }

// What the elements of a line take in each pass over small pieces, without the copy.
static double line(body sort, size_t elements, double passes) {
    all = COUNT, count = elements;
    double lines = (double)COUNT * sizeof *from / LINE;
    return (work(sort, lines) - work(copies, lines)) / passes;
}

int main(void) {
    unsorted = huge_area(COUNT * sizeof *unsorted);
    from = huge_area(COUNT * sizeof *from);
    to = huge_area(COUNT * sizeof *to);
    for (size_t i = 0; i < COUNT; i++)
        unsorted[i] = random_number();
    memset(to, 0, COUNT * sizeof *to);

    // A pass reads 16 MiB and writes as much: half of its lines are read.
    double merged = line(merge_sort, FEW, 10) / 2;
    all = count = COUNT;
    timed("merge sort of 16 MiB", merge_sort, "seq(32M, op=copy); 22 * seq(32M, op=copy, work=%.2fns)",
          merged);

    // A pass reads twice, and writes in 256 places: its lines are as good as random. Not a power of
    // two of elements, for these places would share the sets of all caches.
    double sorted = line(radix_sort, 2 * FEW, 4) / 2;
    all = count = MANY;
    timed("radix sort of 15 MiB", radix_sort,
          "seq(32000000, op=copy); 4 * (seq(16000000, work=%.2fns); seq(16000000, work=%.2fns); "
          "rand(16000000))",
          sorted, sorted);
    return 0;
}
