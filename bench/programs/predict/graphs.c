// Graphs and sparse matrices: random neighbours, eight for each vertex.
#include "case.h"

enum { VERTICES = 1 << 20, DEGREE = 8, FEW = 256 };

static uint32_t vertices, passes;
static uint32_t *neighbour, *distance, *queue, *parent, *next;
static double *value, *in, *out;

static uint64_t breadth_first(void) {
    size_t head = 0, tail = 0;
    for (uint32_t pass = 0; pass < passes; pass++) {
        memset(distance, 0, vertices * sizeof *distance);
        head = tail = 0;
        // Each pass from another vertex: branches are not learned.
        queue[tail] = random_number() % vertices, distance[queue[tail++]] = 1;
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
    }
    return tail;
}

static uint64_t sparse_product(void) {
    for (uint32_t pass = 0; pass < passes; pass++)
        for (size_t row = 0; row < vertices; row++) {
            double sum = 0;
            for (int i = 0; i < DEGREE; i++)
                sum += value[row * DEGREE + i] * in[neighbour[row * DEGREE + i]];
            out[row] = sum;
        }
    return out[1];
}

static uint64_t pointer_jumping(void) {
    for (uint32_t pass = 0; pass < passes; pass++)
        for (size_t i = 0; i < vertices; i++)
            next[i] = parent[parent[i]];
    return next[1];
}

static void make(uint32_t all) {
    vertices = all;
    passes = VERTICES / all;
    const size_t edges = (size_t)vertices * DEGREE;
    neighbour = huge_area(edges * sizeof *neighbour);
    value = huge_area(edges * sizeof *value);
    for (size_t i = 0; i < edges; i++)
        neighbour[i] = random_number() % vertices, value[i] = 1;
    distance = huge_area(vertices * sizeof *distance);
    queue = huge_area(vertices * sizeof *queue);
    parent = huge_area(vertices * sizeof *parent);
    next = huge_area(vertices * sizeof *next);
    in = huge_area(vertices * sizeof *in);
    out = huge_area(vertices * sizeof *out);
    for (size_t i = 0; i < vertices; i++) {
        parent[i] = random_number() % vertices;
        distance[i] = next[i] = queue[i] = 0, in[i] = 1, out[i] = 0;
    }
}

struct cost {
    double ns, instructions;
};

static struct cost cost(body pass, uint32_t all, double accesses) {
    make(all);
    double ns = work(pass, passes * accesses);
    passes = 1;
    return (struct cost){ns, instructions(pass, accesses)};
}

int main(void) {
    struct cost edge = cost(breadth_first, FEW, FEW * DEGREE);
    struct cost product = cost(sparse_product, FEW / 2, FEW / 2 * DEGREE);
    struct cost jump = cost(pointer_jumping, 4 * FEW, 4 * FEW);
    make(VERTICES);
    timed("breadth-first search, 32 MiB of edges", breadth_first,
          "seq(4M, op=write); seq(4M, op=write); rand(32M, n=1048576, instructions=%.1f); "
          "rand(4M, n=8388608, work=%.2fns, instructions=%.1f)",
          edge.instructions * DEGREE, edge.ns, edge.instructions);
    timed("sparse matrix by vector", sparse_product,
          "seq(96M) & rand(8M, n=8388608, work=%.2fns, instructions=%.1f); seq(8M, op=write)", product.ns,
          product.instructions);
    timed("pointer jumping in 4 MiB", pointer_jumping,
          "seq(4M) & rand(4M, n=1048576, work=%.2fns, instructions=%.1f); seq(4M, op=write)", jump.ns,
          jump.instructions);
    return 0;
}
