// Connected components by label propagation: every node takes the smallest label of its neighbours,
// until none changes.
#include "graph.h"

enum { BATCH = 1024 };

__attribute__((noinline)) static uint32_t propagate(const struct graph *g, uint32_t *label, uint32_t from, uint32_t to) {
    uint32_t changed = 0;
    for (uint32_t node = from; node < to; node++) {
        uint32_t least = label[node];
        for (int i = 0; i < DEGREE; i++) {
            uint32_t other = label[g->edges[(size_t)node * DEGREE + i]];
            least = other < least ? other : least;
        }
        changed += least != label[node];
        label[node] = least;
    }
    return changed;
}

int main(int argc, char **argv) {
    struct arguments a = arguments(argc, argv);
    struct graph g = random_graph(a.mib);
    uint32_t *label = area(g.nodes * sizeof *label);
    uint64_t done = 0, changed = 1, rounds = 0, sum = 0;
    uint32_t at = g.nodes;
    while (goes_on(done, a.work)) {
        if (at >= g.nodes) {
            if (!changed || !rounds) // from anew
                for (uint32_t i = 0; i < g.nodes; i++)
                    label[i] = i ^ (uint32_t)rounds;
            at = changed = 0;
            rounds++;
        }
        uint32_t to = g.nodes - at < BATCH ? g.nodes : at + BATCH;
        changed += propagate(&g, label, at, to);
        done += to - at;
        at = to;
    }
    for (uint32_t i = 0; i < g.nodes; i++)
        sum += label[i];
    if (a.work)
        printf("cc %zu MiB, %lu nodes, sum %lu\n", a.mib, done, sum);
    return 0;
}
