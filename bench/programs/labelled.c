// Loads whose level and pattern are known by how they are made: one load a run, named by its
// function, for bench/labels.sh. The sizes of the caches come from the machine's own record.
//
// A chain reads where the next read goes; indices of random reads are computed, so that these
// overlap; a gather's are read beside; streams go straight on. Areas lie in huge pages where they
// are to be had, unless page walks are what is shown. In lines that another thread writes, the
// reader goes after bytes that stay as they are.
//
// To add one: its kernel, if none is there, and a row in `loads`.
//
// usage: labelled                                lists the loads: name, function, level, pattern,
//                                                what `measure` says of its latency
//        labelled NAME L1 L2 L3 SECONDS          runs one, by the sizes of caches in bytes
//        labelled NAME L1 L2 L3 0                prints the bytes that it goes over
#include "common.h"
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

enum { LINE = 64, PAGE = 4096, STRIDE_BYTES = 17 * LINE, BATCH = 1 << 16 };

struct node {
    struct node *next;
    uint64_t count;
    char rest[LINE - 16];
};

#define KERNEL __attribute__((noinline, noclone))

KERNEL static struct node *chain(struct node *at, long reads) {
    while (reads--)
        at = at->next;
    return at;
}

KERNEL static uint64_t index_chain(const uint64_t *next, uint64_t at, long reads) {
    while (reads--)
        at = next[at];
    return at;
}

enum { TOGETHER = 8 };

// Eight chains side by side: each waits for itself alone.
KERNEL static void eight_chains(struct node **heads, long reads) {
    struct node *a = heads[0], *b = heads[1], *c = heads[2], *d = heads[3];
    struct node *e = heads[4], *f = heads[5], *g = heads[6], *h = heads[7];
    while (reads--) {
        a = a->next, b = b->next, c = c->next, d = d->next;
        e = e->next, f = f->next, g = g->next, h = h->next;
    }
    heads[0] = a, heads[1] = b, heads[2] = c, heads[3] = d;
    heads[4] = e, heads[5] = f, heads[6] = g, heads[7] = h;
}

static uint64_t seed = 1;

KERNEL static uint64_t random_reads(const uint64_t *base, uint64_t words, long reads) {
    uint64_t sum = 0, draw = seed;
    while (reads--) {
        draw = draw * 6364136223846793005ull + 1442695040888963407ull;
        sum += base[(draw >> 32) * words >> 32];
    }
    seed = draw;
    return sum;
}

// One read in sixteen goes far; the others stay within a few lines.
KERNEL static uint64_t seldom_far(const uint64_t *base, uint64_t words, long reads) {
    uint64_t sum = 0, draw = seed;
    while (reads--) {
        draw = draw * 6364136223846793005ull + 1442695040888963407ull;
        uint64_t far = draw >> 60 ? 0 : ~0ull;
        sum += base[((draw >> 28 & 0xffffffff) * words >> 32 & far) | (draw >> 50 & 63)];
    }
    seed = draw;
    return sum;
}

KERNEL static uint64_t gather(const uint64_t *base, const uint32_t *indices, long reads) {
    uint64_t sum = 0;
    for (long i = 0; i < reads; i++)
        sum += base[indices[i]];
    return sum;
}

KERNEL static uint64_t stream(const char *base, size_t bytes, size_t step) {
    uint64_t sum = 0;
    for (const char *at = base; at < base + bytes; at += step)
        sum += *(const volatile uint64_t *)at;
    return sum;
}

KERNEL static void count_up(volatile uint64_t *counter, long times) {
    while (times--)
        __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

KERNEL static void add_up(volatile uint64_t *sum, long times) {
    while (times--)
        *sum += 1;
}

KERNEL static uint64_t look(volatile uint64_t *flag, long times) {
    uint64_t sum = 0;
    while (times--)
        sum ^= *flag;
    return sum;
}

static double seconds;
static volatile int is_over;
static uint64_t began, answer, rounds;

static int is_time_left(void) {
    if (now_ns() - began >= seconds * 1e9)
        is_over = 1;
    return !is_over;
}

// What another thread does meanwhile, on another CPU, and on which bytes.
struct beside {
    void (*does)(volatile uint64_t *, long);
    volatile uint64_t *on;
    size_t lines;
};

static cpu_set_t may;

static void on_cpu(int number) {
    cpu_set_t own;
    CPU_ZERO(&own);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &may) && number-- <= 0) {
            CPU_SET(cpu, &own);
            break;
        }
    sched_setaffinity(0, sizeof own, &own);
}

static void write_lines(struct node *nodes, size_t lines) {
    for (size_t line = 0; line < lines; line++)
        *(volatile uint64_t *)&nodes[line].count += 1;
}

static void *run_beside(void *given) {
    struct beside *beside = given;
    on_cpu(1);
    while (!is_over)
        if (beside->does)
            beside->does(beside->on, BATCH);
        else
            write_lines((struct node *)beside->on, beside->lines);
    return 0;
}

static pthread_t start_beside(struct beside *beside) {
    pthread_t thread;
    sched_getaffinity(0, sizeof may, &may);
    if (pthread_create(&thread, 0, run_beside, beside)) {
        perror("a thread");
        exit(2);
    }
    on_cpu(0);
    return thread;
}

enum made {
    CHAIN, INDEX, EIGHT, RANDOM, SELDOM, GATHER, STREAM, STRIDE, COUNTER, NEIGHBOUR, READER, WRITTEN
};
enum where { IN_L1, IN_L2, IN_L3, IN_DRAM, ONE_LINE };

static const struct load {
    const char *name, *function, *level, *pattern, *figure;
    enum made made;
    enum where where;
    int small_pages, line_a_page;
} loads[] = {
    {"chain_l1", "chain", "L1", "chain", "random", CHAIN, IN_L1, 0, 0},
    {"chain_l2", "chain", "L2", "chain", "random", CHAIN, IN_L2, 0, 0},
    {"chain_l3", "chain", "L3", "chain", "random", CHAIN, IN_L3, 0, 0},
    {"chain_dram", "chain", "DRAM", "chain", "random", CHAIN, IN_DRAM, 0, 0},
    {"chain_dram_small_pages", "chain", "DRAM", "chain", "random_4K", CHAIN, IN_DRAM, 1, 0},
    {"chain_l2_walk", "chain", "L2", "chain", "walk", CHAIN, IN_L2, 1, 1},
    {"chain_l3_small_pages", "chain", "L3", "chain", "random_4K", CHAIN, IN_L3, 1, 0},
    {"index_l1", "index_chain", "L1", "chain", "random", INDEX, IN_L1, 0, 0},
    {"index_dram", "index_chain", "DRAM", "chain", "random", INDEX, IN_DRAM, 0, 0},
    {"eight_chains_dram", "eight_chains", "DRAM", "chain", "random", EIGHT, IN_DRAM, 0, 0},
    {"random_l2", "random_reads", "L2", "parallel", "random", RANDOM, IN_L2, 0, 0},
    {"random_l3", "random_reads", "L3", "parallel", "random", RANDOM, IN_L3, 0, 0},
    {"random_dram", "random_reads", "DRAM", "parallel", "random", RANDOM, IN_DRAM, 0, 0},
    {"random_dram_small_pages", "random_reads", "DRAM", "parallel", "random_4K", RANDOM, IN_DRAM, 1, 0},
    {"seldom_dram", "seldom_far", "DRAM", "parallel", "-", SELDOM, IN_DRAM, 0, 0},
    {"gather_l2", "gather", "L2", "parallel", "random", GATHER, IN_L2, 0, 0},
    {"gather_dram", "gather", "DRAM", "parallel", "random", GATHER, IN_DRAM, 0, 0},
    {"stream_l3", "stream", "L3", "stream", "-", STREAM, IN_L3, 0, 0},
    {"stream_dram", "stream", "DRAM", "stream", "-", STREAM, IN_DRAM, 0, 0},
    {"stride_dram", "stream", "DRAM", "stream", "-", STRIDE, IN_DRAM, 0, 0},
    {"locked_counter", "count_up", "dirty", "-", "-", COUNTER, ONE_LINE, 0, 0},
    {"false_sharing", "add_up", "dirty", "-", "-", NEIGHBOUR, ONE_LINE, 0, 0},
    {"reader_of_a_flag", "look", "dirty", "-", "-", READER, ONE_LINE, 0, 0},
    {"chain_written_elsewhere", "chain", "dirty", "chain", "-", WRITTEN, IN_L2, 0, 0},
};

// The memory, and how its lines lie in it: one after the other, or one in each page.
static struct node *base;
static size_t lines, pitch;

static struct node *line_at(size_t number) {
    size_t within = pitch == LINE ? 0 : number * 7 % (PAGE / LINE) * LINE;
    return (struct node *)((char *)base + number * pitch + within);
}

static size_t bytes_of(const struct load *load, const double *caches) {
    switch (load->where) {
    case IN_L1: return caches[0] / 2;
    case IN_L2: return caches[1] / 2;
    // As far from the one in front as from the one behind.
    case IN_L3: return sqrt(caches[1] * caches[2]);
    case IN_DRAM: return fmin(fmax(4 * caches[2], 128 << 20), 2147483648.0);
    case ONE_LINE: return PAGE;
    }
    return 0;
}

static void lay_out(const struct load *load, size_t bytes) {
    lines = bytes / LINE;
    pitch = load->line_a_page ? PAGE : LINE;
    base = area(lines * pitch);
    if (load->small_pages)
        madvise(base, lines * pitch, MADV_NOHUGEPAGE);
    for (size_t number = 0; number < lines; number++)
        line_at(number)->next = 0;
    if (load->made != CHAIN && load->made != EIGHT && load->made != INDEX && load->made != WRITTEN)
        return;
    uint32_t *order = malloc(lines * sizeof *order);
    one_cycle(order, lines);
    for (size_t number = 0; number < lines; number++)
        if (load->made == INDEX)
            *(uint64_t *)line_at(number) = (uint64_t)order[number] * (LINE / 8);
        else
            line_at(number)->next = line_at(order[number]);
    free(order);
}

static void run(const struct load *load, size_t bytes) {
    struct beside beside = {0};
    pthread_t thread = 0;
    uint32_t *indices = 0;
    struct node *at = base, *heads[TOGETHER];
    const uint64_t words = lines * (LINE / 8);
    // Indices are data, too: they are few where the cache has to hold both.
    const size_t gathered = load->where == IN_DRAM ? BATCH : BATCH / 8;
    volatile uint64_t *own = (volatile uint64_t *)base;
    if (load->made == GATHER) {
        indices = malloc(gathered * sizeof *indices);
        for (size_t i = 0; i < gathered; i++)
            indices[i] = random_number() % words;
    }
    for (size_t number = 0; number < TOGETHER; number++)
        heads[number] = line_at(number * (lines / TOGETHER));
    if (load->made == COUNTER)
        beside = (struct beside){count_up, own, 1};
    if (load->made == NEIGHBOUR)
        beside = (struct beside){add_up, own + 1, 1};
    if (load->made == READER)
        beside = (struct beside){add_up, own, 1};
    if (load->made == WRITTEN)
        beside = (struct beside){0, own, lines};
    if (beside.on)
        thread = start_beside(&beside);
    began = now_ns();
    for (; is_time_left(); rounds++)
        switch (load->made) {
        case CHAIN:
        case WRITTEN: at = chain(at, BATCH); break;
        case INDEX: answer = index_chain((uint64_t *)base, answer, BATCH); break;
        case EIGHT: eight_chains(heads, BATCH / TOGETHER); break;
        case RANDOM: answer += random_reads((uint64_t *)base, words, BATCH); break;
        case SELDOM: answer += seldom_far((uint64_t *)base, words, BATCH); break;
        case GATHER: {
            // Other places in each round.
            size_t far = random_number() % words;
            for (size_t i = 0; i < gathered; i++)
                indices[i] = (indices[i] + far) % words;
            answer += gather((uint64_t *)base, indices, gathered);
            break;
        }
        case STREAM: answer += stream((char *)base, bytes, 8); break;
        case STRIDE: answer += stream((char *)base, bytes, STRIDE_BYTES); break;
        case COUNTER: count_up(own, BATCH); break;
        case NEIGHBOUR: add_up(own, BATCH); break;
        case READER: answer ^= look(own, BATCH); break;
        }
    if (thread)
        pthread_join(thread, 0);
    answer += (uintptr_t)at + (uintptr_t)heads[0];
}

int main(int argc, char **argv) {
    const size_t count = sizeof loads / sizeof *loads;
    if (argc == 1) {
        for (const struct load *load = loads; load < loads + count; load++)
            printf("%s %s %s %s %s\n", load->name, load->function, load->level, load->pattern, load->figure);
        return 0;
    }
    const struct load *load = loads;
    while (load < loads + count && strcmp(load->name, argv[1]))
        load++;
    if (argc != 6 || load == loads + count) {
        fprintf(stderr, "usage: %s [NAME L1 L2 L3 SECONDS]\n", argv[0]);
        return 2;
    }
    double caches[3] = {atof(argv[2]), atof(argv[3]), atof(argv[4])};
    seconds = atof(argv[5]);
    size_t bytes = bytes_of(load, caches);
    if (seconds <= 0) {
        printf("%zu\n", bytes);
        return 0;
    }
    lay_out(load, bytes);
    run(load, bytes);
    printf("%s: %.1f ns for each read, %lu\n", load->name, (now_ns() - began) / (double)(rounds * BATCH), answer);
    return 0;
}
