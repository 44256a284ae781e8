/* Moves a known number of bytes between memory and caches: `traffic KIND BYTES PASSES`. Prints what
 * memory has to read and to write, in bytes, if no line stays in a cache from one pass to the next.
 * BYTES is the size of each array. The loops go by 8 bytes, and none becomes a call of libc. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <emmintrin.h>

#define PLAIN __attribute__((noinline, noclone, optimize("no-tree-loop-distribute-patterns")))

PLAIN static uint64_t reads(const uint64_t *a, size_t n) {
    uint64_t s = 0;
    for (size_t i = 0; i < n; i++) s += a[i];
    return s;
}
PLAIN static void writes(uint64_t *a, size_t n, uint64_t v) {
    for (size_t i = 0; i < n; i++) a[i] = v + i;
}
PLAIN static void copies(uint64_t *a, const uint64_t *b, size_t n) {
    for (size_t i = 0; i < n; i++) a[i] = b[i];
}
PLAIN static void triads(uint64_t *a, const uint64_t *b, const uint64_t *c, size_t n) {
    for (size_t i = 0; i < n; i++) a[i] = b[i] + 3 * c[i];
}
PLAIN static void streams(uint64_t *a, size_t n, uint64_t v) {
    for (size_t i = 0; i < n; i++) _mm_stream_si64((long long *)&a[i], (long long)(v + i));
}
/* Down the columns of a matrix whose rows are 4 KiB: each step is another line. */
PLAIN static uint64_t columns(const uint64_t *a, size_t n) {
    size_t width = 512, rows = n / width;
    uint64_t s = 0;
    for (size_t j = 0; j < width; j += 64)
        for (size_t i = 0; i < rows; i++) s += a[i * width + j];
    return s;
}
/* Through all lines once, in an order that no prefetcher knows. */
PLAIN static uint64_t chases(const uint64_t *a, size_t steps) {
    uint64_t at = 0;
    for (size_t i = 0; i < steps; i++) at = a[at];
    return at;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    const char *kind = argv[1];
    size_t bytes = strtoull(argv[2], 0, 0), passes = strtoull(argv[3], 0, 0), n = bytes / 8;
    uint64_t *a = aligned_alloc(4096, bytes), *b = 0, *c = 0, s = 0;
    double read = 0, written = 0, all = (double)bytes * (double)passes;
    if (!a) return 1;
    /* What is set up before is known, too: it allocates lines, and writes them back. */
    if (!strcmp(kind, "chase")) {
        size_t lines = n / 8;
        uint32_t *order = malloc(lines * sizeof *order);
        if (!order) return 1;
        uint64_t x = 88172645463325252u;
        for (size_t i = 0; i < lines; i++) order[i] = (uint32_t)i;
        for (size_t i = lines - 1; i > 0; i--) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            size_t j = x % i;
            uint32_t t = order[i];
            order[i] = order[j], order[j] = t;
        }
        for (size_t i = 0; i < lines; i++) a[8 * (size_t)order[i]] = 8 * (size_t)order[(i + 1) % lines];
        free(order);
        for (size_t p = 0; p < passes; p++) s += chases(a, lines);
        /* The setting up: once through `order` up and once down at random, once through `a`. */
        read = all, written = 0;
        printf("%s only-passes %.0f %.0f %lu\n", kind, read, written, (unsigned long)s);
        return 0;
    }
    writes(a, n, 1);
    if (!strcmp(kind, "copy") || !strcmp(kind, "triad") || !strcmp(kind, "memcpy")) {
        b = aligned_alloc(4096, bytes), c = aligned_alloc(4096, bytes);
        if (!b || !c) return 1;
        writes(b, n, 2);
        if (!strcmp(kind, "triad")) writes(c, n, 3);
    }
    double arrays = 1 + (b ? 1 : 0) + (!strcmp(kind, "triad") ? 1 : 0);
    double setup = arrays * (double)bytes;
    for (size_t p = 0; p < passes; p++) {
        if (!strcmp(kind, "read")) s += reads(a, n);
        else if (!strcmp(kind, "write")) writes(a, n, p);
        else if (!strcmp(kind, "copy")) copies(a, b, n);
        else if (!strcmp(kind, "memcpy")) memcpy(a, b, bytes);
        else if (!strcmp(kind, "triad")) triads(a, b, c, n);
        else if (!strcmp(kind, "nt")) streams(a, n, p);
        else if (!strcmp(kind, "columns")) s += columns(a, n);
        else return 2;
    }
    if (!strcmp(kind, "read")) read = all;
    if (!strcmp(kind, "write")) read = all, written = all;
    if (!strcmp(kind, "copy") || !strcmp(kind, "memcpy")) read = 2 * all, written = all;
    if (!strcmp(kind, "triad")) read = 3 * all, written = all;
    if (!strcmp(kind, "nt")) written = all;
    if (!strcmp(kind, "columns")) read = all / 8;
    s += a[n / 2];
    printf("%s whole %.0f %.0f %lu\n", kind, setup + read, setup + written, (unsigned long)s);
    return 0;
}
