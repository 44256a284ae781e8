// The plain peer of `gleaner measure mlp`: N independent loads of lines of a large area between two
// readings of the clock, 1 NOP before the last of them; and two loads of which the second depends
// on the first. Lines come in the order of one random cycle, so that none is in a cache yet. Prints
// the median and the mean (without the slowest twentieth) ticks of a shot over N, those two in
// sequence last, as N = 0. Shots beside another hyperthread of the core, which takes half of some
// buffers, are left out where there are enough others: it is at work where four chains of adds make
// fewer than four adds a cycle (on cores with as many adders). With a fourth argument, each page is
// touched at its first line before the shot (and lines that are first ones are left out): no page
// walks then.
// usage: mlp BYTES CPU SHOTS [touch]
#define _GNU_SOURCE
#include "chain.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE = 64, PAGE = 4096, HUGE_PAGE = 2 << 20, MOST = 32, BATCH = 100 };

// Loads `first` addresses of the table, goes over `gap` NOPs, loads one more.
#define SHOT(name, first, gap)                                                                                 \
    static uint64_t name(char **table) {                                                                       \
        uint64_t ticks;                                                                                        \
        __asm__ volatile("mfence\n lfence\n rdtsc\n shl $32, %%rdx\n or %%rdx, %%rax\n mov %%rax, %%r8\n lfence\n" \
                         ".set at, 0\n"                                                                        \
                         ".rept " #first "\n mov at(%1), %%rax\n mov (%%rax), %%rbx\n .set at, at + 8\n .endr\n"   \
                         ".rept " #gap "\n nop\n .endr\n"                                                      \
                         "mov at(%1), %%rax\n mov (%%rax), %%rbx\n"                                            \
                         "rdtscp\n shl $32, %%rdx\n or %%rdx, %%rax\n sub %%r8, %%rax\n lfence\n"              \
                         : "=&a"(ticks)                                                                        \
                         : "r"(table)                                                                          \
                         : "rbx", "rcx", "rdx", "r8", "cc", "memory");                                         \
        return ticks;                                                                                          \
    }

// clang-format off
#define EACH(F) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15) F(16) F(17) F(18) \
    F(19) F(20) F(21) F(22) F(23) F(24) F(25) F(26) F(27) F(28) F(29) F(30) F(31) F(32)
// clang-format on
#define DEFINE(n) SHOT(shot_##n, n - 1, 1)
#define NAME(n) shot_##n,
EACH(DEFINE)

static uint64_t in_sequence(char **table) {
    uint64_t ticks;
    __asm__ volatile("mov (%1), %%rcx\n mov %%rcx, %%r9\n"
                     "mfence\n lfence\n rdtsc\n shl $32, %%rdx\n or %%rdx, %%rax\n mov %%rax, %%r8\n lfence\n"
                     "mov (%%r9), %%rax\n mov (%%rax), %%rax\n"
                     "rdtscp\n shl $32, %%rdx\n or %%rdx, %%rax\n sub %%r8, %%rax\n lfence\n"
                     : "=&a"(ticks)
                     : "r"(table)
                     : "rcx", "rdx", "r8", "r9", "cc", "memory");
    return ticks;
}

static uint64_t (*const shots[])(char **) = {in_sequence, EACH(NAME)};

static uint64_t ticks_now(void) {
    uint64_t ticks;
    __asm__ volatile("lfence\n rdtsc\n shl $32, %%rdx\n or %%rdx, %%rax\n lfence" : "=a"(ticks)::"rdx", "memory");
    return ticks;
}

// Adds a cycle: four chains of them against one. The best of three, since a clock that moves lowers
// one of them.
static double breadth(void) {
    double best = 0;
    for (int i = 0; i < 3; i++) {
        uint64_t a = 0, b = 0, c = 0, d = 0, one = 1, t0 = ticks_now(), t1;
        __asm__ volatile(".rept 4000\n add %1, %0\n .endr" : "+r"(a) : "r"(one));
        t1 = ticks_now();
        __asm__ volatile(".rept 1000\n add %4, %0\n add %4, %1\n add %4, %2\n add %4, %3\n .endr"
                         : "+r"(a), "+r"(b), "+r"(c), "+r"(d)
                         : "r"(one));
        double now = (double)(t1 - t0) / (ticks_now() - t1);
        best = now > best && now < 4.1 ? now : best;
    }
    return best;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: mlp BYTES CPU SHOTS [touch]\n");
        return 2;
    }
    size_t bytes = strtoull(argv[1], 0, 0), count = strtoull(argv[3], 0, 0) / BATCH * BATCH;
    int touch = argc > 4;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(argv[2]), &set);
    if (sched_setaffinity(0, sizeof set, &set))
        return perror("mlp: pinning"), 1;
    char *map = mmap(0, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double *ticks = malloc((MOST + 1) * count * sizeof *ticks);
    if (map == MAP_FAILED || !ticks || !count)
        return perror("mlp: memory"), 1;
    char *area = (char *)(((uintptr_t)map + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    madvise(area, bytes, MADV_HUGEPAGE);
    memset(area, 1, bytes);
    // Each line holds the address of the next one.
    size_t lines = bytes / LINE;
    uint32_t *order = malloc(lines * sizeof *order);
    if (!order)
        return perror("mlp: memory"), 1;
    one_cycle(order, lines);
    for (size_t i = 0; i < lines; i++)
        *(char **)(area + i * LINE) = area + order[i] * (size_t)LINE;
    size_t at = 0, kept[MOST + 1] = {0}, beside[MOST + 1] = {0};
    // Numbers of loads take turns, so that what comes and goes meets all of them.
    for (size_t done = 0; done < count; done += BATCH)
        for (int n = 0; n <= MOST; n++) {
            double before = breadth(), mine[BATCH];
            for (size_t i = 0; i < BATCH; i++) {
                char *table[MOST];
                int wanted = n ? n : 2;
                for (int k = 0; k < wanted; at = order[at]) {
                    // Dependent ones must follow each other, so one left out takes the one before
                    // with it.
                    if (touch && at % (PAGE / LINE) == 0)
                        k = n ? k : 0;
                    else
                        table[k++] = area + at * LINE;
                }
                for (int k = 0; touch && k < wanted; k++)
                    *(volatile char *)((uintptr_t)table[k] & ~(uintptr_t)(PAGE - 1));
                mine[i] = shots[n](table);
            }
            double after = breadth();
            int whole = (before < after ? before : after) > 3.7;
            // From the front those that count, from the back the others.
            size_t to = whole ? kept[n] : count - beside[n] - BATCH;
            memcpy(ticks + n * count + to, mine, sizeof mine);
            *(whole ? &kept[n] : &beside[n]) += BATCH;
        }
    size_t fewest = count, counted = 0;
    for (int n = 0; n <= MOST; n++) {
        fewest = kept[n] < fewest ? kept[n] : fewest;
        counted += kept[n];
    }
    fprintf(stderr, "mlp: %.0f%% of the shots had the core alone\n", 100.0 * counted / (count * (MOST + 1)));
    for (int n = 1; n <= MOST + 1; n++) {
        double *mine = ticks + n % (MOST + 1) * count, sum = 0;
        size_t shots = fewest >= 3 * BATCH ? kept[n % (MOST + 1)] : count, most = shots - shots / 20;
        qsort(mine, shots, sizeof *mine, ascending);
        for (size_t i = 0; i < most; i++)
            sum += mine[i];
        printf("%d %.0f %.1f\n", n % (MOST + 1), mine[shots / 2], sum / most);
    }
    return 0;
}
