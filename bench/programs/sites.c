// Walks along lists that are made at ten places in ten ways, each for a part of the time that the
// seed chooses, and says at the end how long each took: for bench/objects.sh. All lists are of the
// same size, and their nodes lie in no order, so that each step waits for memory.
//
// usage: sites SEED SECONDS          prints a line for each: where it is made, seconds
#include "common.h"
#include <string.h>

enum { LINE = 64, LINES = 1 << 18, STEPS = 4096, KINDS = 10 };

struct node {
    struct node *next;
    char rest[LINE - sizeof(struct node *)];
};

enum { BYTES = LINES * sizeof(struct node) };

#define APART __attribute__((noinline, noclone))

static struct node global_list[LINES] __attribute__((aligned(64)));
static struct node *pieces[LINES];

APART static void *by_malloc(void) { return malloc(BYTES); }
APART static void *by_calloc(void) { return calloc(LINES, sizeof(struct node)); }
APART static void *by_aligned_alloc(void) { return aligned_alloc(LINE, BYTES); }
APART static void *by_mmap(void) { return mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
APART static void *another_malloc(void) { return malloc(BYTES); }
APART static void *by_realloc(void) {
    void *small = malloc(LINE);
    return small ? realloc(small, BYTES) : 0;
}
APART static void *by_memalign(void) {
    void *made = 0;
    return posix_memalign(&made, 4096, BYTES) ? 0 : made;
}
APART static void *reallocated_twice(void) {
    void *made = calloc(1, BYTES / 4);
    return made ? realloc(made, BYTES) : 0;
}
// One allocation for each node, as programs make lists.
APART static void *node_by_node(void) {
    for (size_t i = 0; i < LINES; i++)
        if (!(pieces[i] = malloc(sizeof(struct node))))
            return 0;
    return pieces;
}
static void *one_global(void) { return global_list; }

static const struct kind {
    const char *name;
    void *(*make)(void);
} kinds[KINDS] = {
    {"by_malloc", by_malloc},
    {"by_calloc", by_calloc},
    {"by_realloc", by_realloc},
    {"by_aligned_alloc", by_aligned_alloc},
    {"by_memalign", by_memalign},
    {"by_mmap", by_mmap},
    {"another_malloc", another_malloc},
    {"reallocated_twice", reallocated_twice},
    {"node_by_node", node_by_node},
    {"global_list", one_global},
};

APART static struct node *walk(struct node *at, long steps) {
    while (steps--)
        at = at->next;
    return at;
}

// Other programs on this CPU take none of it.
static uint64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s SEED SECONDS\n", argv[0]);
        return 2;
    }
    state += strtoull(argv[1], 0, 0) * 0x9e3779b97f4a7c15ull;
    for (int i = 0; i < 16; i++)
        random_number();
    struct node *at[KINDS];
    uint32_t *order = malloc(LINES * sizeof *order);
    for (int kind = 0; kind < KINDS; kind++) {
        struct node *list = kinds[kind].make();
        if (!list || list == MAP_FAILED) {
            perror(kinds[kind].name);
            return 2;
        }
        one_cycle(order, LINES);
        int in_pieces = (void *)list == (void *)pieces;
        for (size_t i = 0; i < LINES; i++)
            if (in_pieces)
                pieces[i]->next = pieces[order[i]];
            else
                list[i].next = &list[order[i]];
        at[kind] = in_pieces ? pieces[0] : list;
    }
    free(order);
    // The parts fall by a fifth from one to the next; which list has which is the seed's choice.
    int which[KINDS];
    for (int i = 0; i < KINDS; i++)
        which[i] = i;
    for (int i = KINDS - 1; i > 0; i--) {
        int j = random_number() % (i + 1), t = which[i];
        which[i] = which[j];
        which[j] = t;
    }
    double part = 1, took[KINDS] = {0};
    long steps[KINDS];
    for (int i = 0; i < KINDS; i++, part *= 0.8)
        steps[which[i]] = STEPS * part;
    uint64_t began = now_ns();
    while (now_ns() - began < atof(argv[2]) * 1e9)
        for (int kind = 0; kind < KINDS; kind++) {
            uint64_t before = cpu_ns();
            at[kind] = walk(at[kind], steps[kind]);
            took[kind] += (cpu_ns() - before) / 1e9;
        }
    uintptr_t ends = 0;
    for (int kind = 0; kind < KINDS; kind++) {
        ends ^= (uintptr_t)at[kind];
        printf("%s %.3f\n", kinds[kind].name, took[kind]);
    }
    return ends == 1;
}
