// Follows a random cycle through all lines of an area: every load waits for the one before.
#include "common.h"

enum { LINE = 64, BATCH = 4096 };

__attribute__((noinline)) static void **chase(void **p, long loads) {
    while (loads--)
        p = *p;
    return p;
}

int main(int argc, char **argv) {
    struct arguments a = arguments(argc, argv);
    size_t lines = (a.mib << 20) / LINE;
    char *base = area(a.mib << 20);
    uint32_t *order = malloc(lines * sizeof *order);
    one_cycle(order, lines);
    for (size_t i = 0; i < lines; i++)
        *(void **)(base + i * LINE) = base + (size_t)order[i] * LINE;
    free(order);
    void **p = (void **)base;
    uint64_t done = 0;
    while (goes_on(done, a.work)) {
        p = chase(p, BATCH);
        done += BATCH;
    }
    if (a.work)
        printf("chase %zu MiB, %lu loads, ends at line %zu\n", a.mib, done, ((char *)p - base) / LINE);
    return 0;
}
