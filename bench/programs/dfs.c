// Depth-first search through a random graph, with a stack of its own.
#include "graph.h"

enum { BATCH = 1024 };

struct search {
    const struct graph *graph;
    uint32_t *seen; // the round in which a node was seen
    uint32_t *stack;
    size_t depth;
    uint32_t round;
};

// Visits at most the given number of nodes; returns how many it visited.
__attribute__((noinline)) static uint64_t visit(struct search *s, uint64_t most) {
    uint64_t visited = 0;
    const uint32_t *edges = s->graph->edges;
    while (s->depth && visited < most) {
        uint32_t node = s->stack[--s->depth];
        visited++;
        for (int i = 0; i < DEGREE; i++) {
            uint32_t next = edges[(size_t)node * DEGREE + i];
            if (s->seen[next] != s->round) {
                s->seen[next] = s->round;
                s->stack[s->depth++] = next;
            }
        }
    }
    return visited;
}

int main(int argc, char **argv) {
    struct arguments a = arguments(argc, argv);
    struct graph g = random_graph(a.mib);
    struct search s = {&g, area(g.nodes * sizeof(uint32_t)), area(g.nodes * sizeof(uint32_t)), 0, 0};
    uint64_t done = 0, sum = 0;
    uint32_t from = 0;
    while (goes_on(done, a.work)) {
        if (!s.depth) {
            s.round++;
            s.stack[s.depth++] = from;
            s.seen[from] = s.round;
            from = (from + 1) % g.nodes;
        }
        done += visit(&s, BATCH);
        sum += s.depth ? s.stack[s.depth - 1] : 0;
    }
    if (a.work)
        printf("dfs %zu MiB, %lu nodes, sum %lu\n", a.mib, done, sum);
    return 0;
}
