// One area that several chases go through, each by a mapping of its own: a file's, a random cycle
// through all of its lines. Lines hold places, not addresses.
#include "common.h"
#include <sys/file.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { LINE = 64 };

// The file's area, in huge pages where they are to be had; filled by the first process.
static char *shared_area(const char *path, size_t bytes) {
    const size_t huge = 2 << 20;
    int file = open(path, O_RDWR | O_CREAT, 0666);
    struct stat now;
    if (file < 0 || flock(file, LOCK_EX) || fstat(file, &now)) {
        perror(path);
        exit(2);
    }
    int filled = now.st_size == (off_t)bytes;
    char *space = mmap(0, bytes + huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *start = (char *)(((uintptr_t)space + huge - 1) & ~(uintptr_t)(huge - 1));
    if (space == MAP_FAILED || (!filled && ftruncate(file, bytes)) ||
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
