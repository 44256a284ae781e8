// Follows a random cycle through all lines of an area that others walk through at the same time: it is a file's, filled by who
// comes first. Every load waits for the one before. The area lies elsewhere in each process, so lines hold places, not addresses.
// usage: walk MIB WORK PROGRESS-FILE AREA-FILE START     (a number: where it starts)
#include "common.h"
#include <sys/file.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { LINE = 64, BATCH = 4096 };

__attribute__((noinline)) static size_t walk(const char *base, size_t at, long loads) {
    while (loads--)
        at = *(const size_t *)(base + at);
    return at;
}

// The file's area, in huge pages where they are to be had.
static char *shared_area(const char *path, size_t bytes) {
    const size_t huge = 2 << 20;
    int file = open(path, O_RDWR | O_CREAT, 0666);
    struct stat now;
    if (file < 0 || flock(file, LOCK_EX) || fstat(file, &now)) {
        perror(path);
        exit(2);
    }
    int filled = now.st_size == (off_t)bytes;
    char *room = mmap(0, bytes + huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *start = (char *)(((uintptr_t)room + huge - 1) & ~(uintptr_t)(huge - 1));
    if (room == MAP_FAILED || (!filled && ftruncate(file, bytes)) ||
        mmap(start, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
        perror(path);
        exit(2);
    }
    if (!filled) {
        size_t lines = bytes / LINE;
        const uint64_t before = state;
        uint32_t *order = malloc(lines * sizeof *order);
        one_cycle(order, lines);
        for (size_t i = 0; i < lines; i++)
            *(size_t *)(start + i * LINE) = (size_t)order[i] * LINE;
        free(order);
        state = before; // so that who fills it starts where it would have started otherwise
    }
    madvise(start, bytes, MADV_COLLAPSE);
    flock(file, LOCK_UN); // the mapping would keep it
    close(file);
    return start;
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
