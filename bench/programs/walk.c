// Follows a random cycle through all lines of an area that others walk through at the same time: it
// is a file's, filled by the first process. Every load waits for the one before. The area lies
// elsewhere in each process, so lines hold places, not addresses.
// usage: walk MIB WORK PROGRESS-FILE AREA-FILE START     (a number: where it starts)
#include "shared.h"

enum { BATCH = 4096 };

__attribute__((noinline)) static size_t walk(const char *base, size_t at, long loads) {
    while (loads--)
        at = *(const size_t *)(base + at);
    return at;
}

int main(int argc, char **argv) {
    struct arguments a = arguments(argc, argv);
    if (argc != 6) {
        fprintf(stderr, "usage: %s MIB WORK PROGRESS-FILE AREA-FILE START\n", argv[0]);
        return 2;
    }
    const char *base = shared_area(argv[4], a.mib << 20);
    state += strtoull(argv[5], 0, 0) << 32;
    for (int i = 0; i < 16; i++)
        random_number();
    size_t at = random_number() % ((a.mib << 20) / LINE) * LINE;
    uint64_t done = 0;
    while (goes_on(done, a.work)) {
        at = walk(base, at, BATCH);
        done += BATCH;
    }
    if (a.work)
        printf("walk %zu MiB, %lu loads, ends at line %zu\n", a.mib, done, at / LINE);
    return 0;
}
