// Shortest paths: rounds of relaxing all edges, from each node to its neighbours.
#include "graph.h"

__attribute__((noinline)) static size_t relax(const struct graph *g, uint32_t *distance, const uint8_t *weights) {
    size_t changed = 0;
    for (size_t i = 0; i < g->nodes; i++) {
        uint32_t own = distance[i];
        if (own == UINT32_MAX) continue;
        for (size_t k = g->begin[i]; k < g->begin[i + 1]; k++) {
#ifdef BY_HAND
            FETCH(&distance[g->to[k + AHEAD]]);
#endif
            uint32_t through = own + weights[k];
            if (through < distance[g->to[k]]) {
                distance[g->to[k]] = through;
                changed++;
            }
        }
    }
    return changed;
}

int main(int argc, char **argv) {
    struct graph g = graph(entries(argc, argv, 23), 4);
    uint32_t *distance = memory(g.nodes * 4);
    uint8_t *weights = memory(g.edges + 64);
    for (size_t i = 0; i < g.edges + 64; i++) weights[i] = 1 + random_number() % 100;
    // From many sources at once, each with a start of its own.
    for (size_t i = 0; i < g.nodes; i++) distance[i] = (uint32_t)(i % 1000);
    uint64_t sum = 0;
    for (int round = 0; round < 6; round++) sum = sum * 31 + relax(&g, distance, weights);
    printf("%lu\n", sum);
}
