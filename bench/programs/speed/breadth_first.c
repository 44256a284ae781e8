// Breadth-first search by lists of edges: which neighbours are new.
#include "graph.h"

__attribute__((noinline)) static size_t step(const struct graph *g, uint8_t *seen, const uint32_t *front, size_t number,
                                             uint32_t *next) {
    size_t found = 0;
    for (size_t i = 0; i < number; i++) {
        for (size_t k = g->begin[front[i]]; k < g->begin[front[i] + 1]; k++) {
            uint32_t to = g->to[k];
#ifdef BY_HAND
            FETCH(&seen[g->to[k + 8]]);
            if (k == g->begin[front[i]] && i + 8 < number) FETCH(&g->begin[front[i + 8]]);
            if (k == g->begin[front[i]] && i + 4 < number) FETCH(&g->to[g->begin[front[i + 4]]]);
#endif
            if (!seen[to]) {
                seen[to] = 1;
                next[found++] = to;
            }
        }
    }
    return found;
}

int main(int argc, char **argv) {
    struct graph g = graph(entries(argc, argv, 23), 16);
    uint8_t *seen = memory(g.nodes);
    uint32_t *front = memory(g.nodes * 4), *next = memory(g.nodes * 4);
    uint64_t sum = 0;
    for (int root = 0; root < 1; root++) {
        memset(seen, 0, g.nodes);
        size_t number = 1, depth = 0;
        front[0] = (uint32_t)root, seen[root] = 1;
        while (number) {
            number = step(&g, seen, front, number, next);
            uint32_t *swap = front;
            front = next, next = swap;
            sum = sum * 31 + number + depth++;
        }
    }
    printf("%lu\n", sum);
}
