// A random graph in compressed rows.
#include "common.h"

struct graph {
    size_t nodes, edges;
    uint32_t *begin, *to;
};

static struct graph graph(size_t nodes, size_t degree) {
    struct graph g = {nodes, nodes * degree, memory((nodes + 1) * 4), memory((nodes * degree + 64) * 4)};
    for (size_t i = 0; i <= nodes; i++) g.begin[i] = (uint32_t)(i * degree);
    for (size_t i = 0; i < g.edges + 64; i++) g.to[i] = random_number() & (nodes - 1);
    return g;
}
