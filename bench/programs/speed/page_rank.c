// PageRank by pulling: each node adds up what its neighbours have.
#include "graph.h"

__attribute__((noinline)) static void iterate(const struct graph *g, const float *rank, float *next) {
    for (size_t i = 0; i < g->nodes; i++) {
        float sum = 0;
        for (size_t k = g->begin[i]; k < g->begin[i + 1]; k++) {
#ifdef BY_HAND
            FETCH(&rank[g->to[k + AHEAD]]);
#endif
            sum += rank[g->to[k]];
        }
        next[i] = 0.15f + 0.85f * sum / 16;
    }
}

int main(int argc, char **argv) {
    struct graph g = graph(entries(argc, argv, 24), 2);
    float *rank = memory(g.nodes * 4), *next = memory(g.nodes * 4);
    for (size_t i = 0; i < g.nodes; i++) rank[i] = (float)(i % 3);
    for (int round = 0; round < 4; round++) {
        iterate(&g, rank, next);
        float *swap = rank;
        rank = next, next = swap;
    }
    double sum = 0;
    for (size_t i = 0; i < g.nodes; i += 997) sum += rank[i];
    printf("%.3f\n", sum);
}
