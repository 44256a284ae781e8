// What the benchmark programs share. They know nothing of Gleaner: plain C, a deterministic answer
// on standard output.
//
// Each takes a size, an amount of work, and maybe a file for its progress: the steps done, visible
// to others while it runs. Work 0 means: until another program writes a 1 into that file's fourth
// word; one in its fifth makes the program sleep for as long.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct progress {
    volatile uint64_t steps, working, go, stop, pause;
};

static struct progress nowhere, *progress = &nowhere;

// A part of a file that others look at while the program runs; the file is made longer where it is
// too short.
static void *shown(const char *path, size_t at, size_t size) {
    struct stat now;
    void *map = MAP_FAILED;
    int file = open(path, O_RDWR | O_CREAT, 0666);
    if (file >= 0 && !fstat(file, &now) && (now.st_size >= (off_t)(at + size) || !ftruncate(file, at + size)))
        map = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, at);
    if (map == MAP_FAILED) {
        perror(path);
        exit(2);
    }
    close(file);
    return map;
}

static void progress_to(const char *path) { progress = shown(path, 0, sizeof *progress); }

// Memory in huge pages where they are to be had, so that walks of page tables are the same for all.
static void *area(size_t bytes) {
    const size_t huge = 2 << 20;
    char *map = mmap(0, bytes + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) {
        perror("memory");
        exit(2);
    }
    char *start = (char *)(((uintptr_t)map + huge - 1) & ~(uintptr_t)(huge - 1));
    madvise(start, bytes, MADV_HUGEPAGE);
    return start;
}

static uint64_t state = 88172645463325252ull;
static inline uint64_t random_number(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void rest(double seconds) {
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, 0);
}

// order[i] is what follows i; all of them are one cycle (Sattolo).
static void one_cycle(uint32_t *order, size_t nodes) {
    for (size_t i = 0; i < nodes; i++)
        order[i] = i;
    for (size_t i = nodes - 1; i > 0; i--) {
        size_t j = random_number() % i;
        uint32_t t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

struct arguments {
    size_t mib;
    uint64_t work;
};

static struct arguments arguments(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: %s MIB WORK [PROGRESS-FILE]\n", argv[0]);
        exit(2);
    }
    if (argc > 3)
        progress_to(argv[3]);
    return (struct arguments){strtoull(argv[1], 0, 0), strtoull(argv[2], 0, 0)};
}

// Whether there is more to do after `done` steps; tells them.
static int goes_on(uint64_t done, uint64_t work) {
    progress->steps = done;
    progress->working = 1;
    while (progress->pause && !progress->stop)
        usleep(2000);
    return work ? done < work : !progress->stop;
}
