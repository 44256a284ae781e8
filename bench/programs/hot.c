// Follows a cycle through a few lines that stay in the first cache: loads that might miss, as far
// as anybody can see, and never do.
#include "common.h"

enum { LINE = 64, LINES = 64, BATCH = 4096 };

__attribute__((noinline)) static void **chase(void **p, long loads) {
    while (loads--)
        p = *p;
    return p;
}

int main(int argc, char **argv) {
    struct arguments a = arguments(argc, argv);
    char *base = area(1 << 20);
    for (size_t i = 0; i < LINES; i++)
        *(void **)(base + i * LINE) = base + (i + 5) % LINES * LINE;
    void **p = (void **)base;
    uint64_t done = 0;
    while (goes_on(done, a.work)) {
        p = chase(p, BATCH);
        done += BATCH;
    }
    if (a.work)
        printf("hot, %lu loads, ends at line %zu\n", done, ((char *)p - base) / LINE);
    return 0;
}
