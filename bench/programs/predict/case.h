// What the programs of `bench/predict.sh` share. Each program has several cases; each case states
// the access pattern that it has, as `gleaner predict` reads it, and is timed by the program.
//
// What a case computes is measured first: the same code over data that fit into the nearest cache,
// with as many operations in all. That is `work=` in its pattern. A core looks ahead over a few
// hundred instructions: those of an access, counted one by one, are `instructions=`.
//
// A line for each case on standard output: name, nanoseconds (the median of the rounds), those of
// the fastest and the slowest round, pattern; with tabs between them.
#include "../common.h"
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

// Fewer where no times are wanted.
#ifndef ROUNDS
#define ROUNDS 11
#endif

enum { LINE = 64 };

#define MIB(n) ((size_t)(n) << 20)
// Data that fit into the nearest cache of any machine, with space for the stack.
#define SMALL ((size_t)16 << 10)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

// Of the mapping that holds this address, as the kernel says; -1 if it does not.
static double in_huge_pages_mib(const void *address) {
    char line[512];
    unsigned long from, to, kib;
    double found = -1;
    int inside = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            inside = from <= (uintptr_t)address && (uintptr_t)address < to;
        else if (inside && sscanf(line, "AnonHugePages: %lu", &kib) == 1)
            found = kib / 1024.0;
    if (maps)
        fclose(maps);
    return found;
}

// Memory in huge pages, which is what is predicted. Where memory is in pieces the kernel gives none
// at the first touch, without a word: it is asked to make them, and if it cannot, that is said.
static void *huge_area(size_t bytes) {
    const size_t huge = 2 << 20;
    const size_t whole = bytes & ~(huge - 1);
    void *start = area(bytes);
    madvise(start, bytes, MADV_POPULATE_WRITE);
    if (whole && madvise(start, whole, MADV_COLLAPSE)) {
        double found = in_huge_pages_mib(start);
        if (found < whole / 1048576.0)
            fprintf(stderr, "%.0f of %.0f MiB are in huge pages\n", found, whole / 1048576.0);
    }
    return start;
}

// What a case found: a compiler must not leave it out.
static volatile uint64_t answer;

typedef uint64_t (*body)(void);

static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// The program's own time: other programs on this CPU do not count.
static uint64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

// Times of the rounds, ascending. The first one brings the memory into the state that passes before
// leave, and is not counted.
static void rounds(body once, uint64_t times[ROUNDS]) {
    answer += once();
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t begin = cpu_ns();
        answer += once();
        times[i] = cpu_ns() - begin;
    }
    qsort(times, ROUNDS, sizeof *times, by_size);
}

// Nanoseconds of one access, with its computing.
static double work(body once, double accesses) {
    uint64_t times[ROUNDS];
    rounds(once, times);
    return times[ROUNDS / 2] / accesses;
}

// Instructions of one access: a child runs them one by one.
static double instructions(body once, double accesses) {
    pid_t child = fork();
    if (!child) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        answer += once();
        raise(SIGSTOP);
        _exit(0);
    }
    int status;
    double steps = 0;
    waitpid(child, &status, 0);
    do {
        ptrace(PTRACE_SINGLESTEP, child, 0, 0);
        waitpid(child, &status, 0);
        steps++;
    } while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return steps / accesses;
}

__attribute__((format(printf, 3, 4))) static void timed(const char *name, body once, const char *pattern,
                                                        ...) {
    uint64_t times[ROUNDS];
    rounds(once, times);
    printf("%s\t%lu\t%lu\t%lu\t", name, times[ROUNDS / 2], times[0], times[ROUNDS - 1]);
    va_list figures;
    va_start(figures, pattern);
    vprintf(pattern, figures);
    va_end(figures);
    printf("\n");
    fflush(stdout);
}

// A cheap mix of all bits, for hashes and for keys in no order.
static inline uint64_t mixed(uint64_t x) {
    x *= 0x9e3779b97f4a7c15;
    return x ^ x >> 32;
}
