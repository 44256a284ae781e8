// What a read takes, in ns of CPU time, where each waits for the one before: random reads of areas
// as large as the fresh programs' middle one and their large one. Says whether an L3 that others
// use, too, serves the middle one now.
//
// usage: yardstick L1 L2 L3        prints the ns of both
#include "fresh/fresh.h"
#include <sys/mman.h>

struct line {
    uint64_t next;
    char rest[56];
};

static double cpu_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static double each_ns(uint64_t bytes) {
    uint64_t count = bytes / sizeof(struct line), all = 1;
    while (all < count)
        all *= 2;
    // Huge pages, where the kernel gives them: walks of the page table are no time of a level.
    struct line *lines = aligned_alloc(2 << 20, (count * sizeof *lines | ((2 << 20) - 1)) + 1);
    madvise(lines, count * sizeof *lines, MADV_HUGEPAGE);
    // One circle through a power of two of lines, less those behind the area.
    for (uint64_t i = 0; i < count; i++) {
        uint64_t next = i;
        do
            next = (next * 6364136223846793005ull + 1442695040888963407ull) & (all - 1);
        while (next >= count);
        lines[i].next = next;
    }
    uint64_t at = 0, reads = 0;
    for (uint64_t i = 0; i < count && i < 1 << 20; i++)
        at = lines[at].next;
    double began = cpu_time(), took = 0;
    for (; took < 0.1; took = cpu_time() - began)
        for (int i = 0; i < 10000; i++, reads++)
            at = lines[at].next;
    free(lines);
    return at < count ? took / reads * 1e9 : 0;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    double middle = each_ns(middle_bytes());
    printf("%.1f %.1f\n", middle, each_ns(dram_bytes()));
}
