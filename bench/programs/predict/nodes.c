// Nodes of several lines, of which all are read: their loads do not wait for each other.
#include "case.h"

enum { LINES = 3, FEW = 1 << 19 };

struct node {
    struct {
        uint64_t next, value;
        char rest[LINE - 16];
    } line[LINES];
};

static struct node *nodes;
static size_t count, steps;

static void make(size_t bytes) {
    nodes = huge_area(bytes);
    count = bytes / sizeof *nodes;
    uint32_t *order = malloc(count * sizeof *order);
    one_cycle(order, count);
    for (size_t i = 0; i < count; i++)
        for (int l = 0; l < LINES; l++) {
            nodes[i].line[l].next = order[i];
            nodes[i].line[l].value = i + l;
        }
    free(order);
}

static inline uint64_t whole(const struct node *n) {
    uint64_t sum = 0;
    for (int l = 0; l < LINES; l++)
        sum += n->line[l].value;
    return sum;
}

static uint64_t list(void) {
    uint64_t sum = 0, at = 0;
    for (size_t i = 0; i < steps; i++, at = nodes[at].line[0].next)
        sum += whole(&nodes[at]);
    return sum;
}

static uint64_t lookups(void) {
    uint64_t sum = 0;
    for (size_t i = 0; i < steps; i++)
        sum += whole(&nodes[mixed(i) % count]);
    return sum;
}

static uint64_t dependent_lookups(void) {
    uint64_t key = 1;
    for (size_t i = 0; i < steps; i++)
        key += whole(&nodes[mixed(key + i) % count]) | 1;
    return key;
}

int main(void) {
    make(SMALL);
    steps = FEW * 4;
    double listed = work(list, steps), found = work(lookups, steps), in_turn = work(dependent_lookups, steps);
    steps = 2000;
    double all = instructions(lookups, steps);
    make(MIB(96));
    steps = count;
    timed("list of nodes of 3 lines, 96 MiB", list, "chase(96M, lines=3, work=%.2fns)", listed);
    steps = FEW;
    timed("nodes of 3 lines at random in 96 MiB", lookups,
          "rand(96M, lines=3, n=524288, work=%.2fns, instructions=%.1f)", found, all);
    timed("nodes of 3 lines in 96 MiB, each from the last value", dependent_lookups,
          "rand(96M, lines=3, mlp=1, n=524288, work=%.2fns)", in_turn);
    return 0;
}
