// The plain peer of `gleaner measure latency`: a random cycle through all lines of an area in
// transparent huge pages, chased for a while; prints nanoseconds a load. Nothing clever: no clock
// correction, no voiding, no intervals.
// usage: chase BYTES LOADS [CPU]
#define _GNU_SOURCE
#include "chain.h"
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LINE = 64, HUGE_PAGE = 2 << 20 };

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: chase BYTES LOADS [CPU]\n");
        return 2;
    }
    size_t bytes = strtoull(argv[1], 0, 0), loads = strtoull(argv[2], 0, 0), lines = bytes / LINE;
    if (argc > 3) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(atoi(argv[3]), &set);
        if (sched_setaffinity(0, sizeof set, &set))
            return perror("chase: pinning"), 1;
    }
    char *map = mmap(0, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || lines < 2)
        return perror("chase: memory"), 1;
    char *area = (char *)(((uintptr_t)map + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    madvise(area, bytes, MADV_HUGEPAGE);
    uint32_t *order = malloc(lines * sizeof *order);
    if (!order)
        return perror("chase: memory"), 1;
    one_cycle(order, lines);
    for (size_t i = 0; i < lines; i++)
        *(void **)(area + i * LINE) = area + (size_t)order[i] * LINE;
    free(order);
    void **p = (void **)area;
    for (size_t i = 0; i < loads / 4; i++)
        p = *p;
    double from = now();
    for (size_t i = 0; i < loads; i++)
        p = *p;
    double to = now();
    printf("%.3f\n", (to - from) / loads);
    return p == 0; // keeps the chase alive
}
