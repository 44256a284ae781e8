// A random directed graph in rows of edges, eight of each node; nodes are a line each.
#include "common.h"

enum { DEGREE = 8 };

struct graph {
    uint32_t nodes;
    uint32_t *edges; // DEGREE of each node
};

static struct graph random_graph(size_t mib) {
    struct graph g = {(mib << 20) / (DEGREE * sizeof(uint32_t) + sizeof(uint32_t)), 0};
    g.edges = area((size_t)g.nodes * DEGREE * sizeof *g.edges);
    for (size_t i = 0; i < (size_t)g.nodes * DEGREE; i++)
        g.edges[i] = random_number() % g.nodes;
    return g;
}
