// The plain peer of `gleaner measure tlb`: a chase over one line in each of N 4 KiB pages, lines
// dealt out over the cache's sets; nanoseconds a load over N, the best and the median of fifteen
// tries, each on memory of its own. With MODE 8 each page is read eight times a lap at random
// instead of once. With a sixth argument the pages are cut from huge ones, so that their memory
// lies together, instead of lying where the kernel happens to have some.
// usage: tlb CPU MODE(1|8) FROM TO STEP [cut]
#define _GNU_SOURCE
#include "chain.h"
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE = 64, PAGE = 4096, HUGE_PAGE = 2 << 20, TRIES = 15, LOADS = 200000 };

static char *place(char *area, size_t pages, size_t node) {
    size_t page = node % pages;
    return area + page * PAGE + page * 29 % (PAGE / LINE) * LINE + node / pages * sizeof(void *);
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double chase(size_t pages, size_t reads, int cut) {
    size_t length = pages * PAGE, nodes = pages * reads;
    char *map = mmap(0, length + 2 * HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint32_t *order = malloc(nodes * sizeof *order);
    if (map == MAP_FAILED || !order) {
        perror("tlb: memory");
        exit(1);
    }
    char *area = (char *)(((uintptr_t)map + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    madvise(area, cut ? (length + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1) : length, cut ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    memset(area, 0, length);
    for (size_t at = 0; cut && at < length; at += HUGE_PAGE) {
        mprotect(area + at, PAGE, PROT_READ);
        mprotect(area + at, PAGE, PROT_READ | PROT_WRITE);
    }
    one_cycle(order, nodes);
    for (size_t i = 0; i < nodes; i++)
        *(void **)place(area, pages, i) = place(area, pages, order[i]);
    void **p = (void **)place(area, pages, 0);
    for (size_t i = 0; i < nodes * 4; i++)
        p = *p;
    double from = now();
    for (size_t i = 0; i < LOADS; i++)
        p = *p;
    double to = now();
    if (!p)
        puts("");
    free(order);
    munmap(map, length + 2 * HUGE_PAGE);
    return (to - from) / LOADS;
}

int main(int argc, char **argv) {
    if (argc < 6) {
        fprintf(stderr, "usage: tlb CPU MODE(1|8) FROM TO STEP [cut]\n");
        return 2;
    }
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(argv[1]), &set);
    if (sched_setaffinity(0, sizeof set, &set))
        return perror("tlb: pinning"), 1;
    for (size_t pages = atol(argv[3]); pages <= (size_t)atol(argv[4]); pages += atol(argv[5])) {
        double tries[TRIES];
        for (int i = 0; i < TRIES; i++)
            tries[i] = chase(pages, atol(argv[2]), argc > 6);
        qsort(tries, TRIES, sizeof *tries, ascending);
        printf("%zu %.2f %.2f\n", pages, tries[0], tries[TRIES / 2]);
    }
    return 0;
}
