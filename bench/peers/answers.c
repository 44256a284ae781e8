// How long a store's answers take, seen from outside while it runs (bench/programs/latency.h).
// usage: answers SECONDS FILE     prints seconds, requests, and the 50th, 95th and 99th percentile in microseconds
#include "../programs/latency.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static uint32_t before[LENGTHS], after[LENGTHS];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static double percentile(uint64_t all, double share) {
    uint64_t above = 0;
    for (unsigned part = LENGTHS; part-- > 0;)
        if ((above += after[part] - before[part]) > all * (1 - share))
            return end_of(part) / 1e3;
    return 0;
}

int main(int argc, char **argv) {
    int file = argc == 3 ? open(argv[2], O_RDONLY) : -1;
    if (file < 0) {
        fprintf(stderr, "usage: %s SECONDS FILE\n", argv[0]);
        return 2;
    }
    const struct answers *answers = mmap(0, sizeof *answers, PROT_READ, MAP_SHARED, file, 4096);
    if (answers == MAP_FAILED) {
        perror(argv[2]);
        return 2;
    }
    double seconds = atof(argv[1]), from = now();
    struct timespec rest = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    memcpy(before, (const void *)answers->counts, sizeof before);
    nanosleep(&rest, 0);
    memcpy(after, (const void *)answers->counts, sizeof after);
    double to = now();
    uint64_t all = 0;
    for (unsigned part = 0; part < LENGTHS; part++)
        all += after[part] - before[part];
    printf("%.4f %lu %.3f %.3f %.3f\n", to - from, all, percentile(all, 0.5), percentile(all, 0.95), percentile(all, 0.99));
    return 0;
}
