// Graphs and sparse matrices: random neighbours, eight for each vertex.
#include "case.h"

enum { VERTICES = 1 << 20, DEGREE = 8 };

static uint32_t *neighbour, *distance, *queue, *parent, *next;
static double *value, *in, *out;

static uint64_t breadth_first(void) {
    memset(distance, 0, VERTICES * sizeof *distance);
    size_t head = 0, tail = 0;
    queue[tail++] = 0, distance[0] = 1;
    while (head < tail) {
        uint32_t from = queue[head++];
        for (int i = 0; i < DEGREE; i++) {
            uint32_t to = neighbour[from * DEGREE + i];
            if (!distance[to]) {
                distance[to] = distance[from] + 1;
                queue[tail++] = to;
            }
        }
    }
    return tail;
}

static uint64_t sparse_product(void) {
    for (size_t row = 0; row < VERTICES; row++) {
        double sum = 0;
        for (int i = 0; i < DEGREE; i++)
            sum += value[row * DEGREE + i] * in[neighbour[row * DEGREE + i]];
        out[row] = sum;
    }
    return out[1];
}

static uint64_t pointer_jumping(void) {
    for (size_t i = 0; i < VERTICES; i++)
        next[i] = parent[parent[i]];
    return next[1];
}

int main(void) {
    const size_t edges = (size_t)VERTICES * DEGREE;
    neighbour = area(edges * sizeof *neighbour);
    value = area(edges * sizeof *value);
    for (size_t i = 0; i < edges; i++)
        neighbour[i] = random_number() % VERTICES, value[i] = 1;
    distance = area(VERTICES * sizeof *distance);
    queue = area(VERTICES * sizeof *queue);
    parent = area(VERTICES * sizeof *parent);
    next = area(VERTICES * sizeof *next);
    in = area(VERTICES * sizeof *in);
    out = area(VERTICES * sizeof *out);
    for (size_t i = 0; i < VERTICES; i++)
        parent[i] = random_number() % VERTICES, next[i] = 0, queue[i] = 0, in[i] = 1, out[i] = 0;
    timed("breadth-first search, 32 MiB of edges", breadth_first,
          "seq(4M, op=write); seq(4M); rand(32M, n=1M); rand(4M, n=8388608)");
    timed("sparse matrix by vector", sparse_product, "seq(96M); rand(8M, n=8388608); seq(8M, op=write)");
    timed("pointer jumping in 4 MiB", pointer_jumping, "seq(4M); rand(4M, n=1048576); seq(4M, op=write)");
    return 0;
}
