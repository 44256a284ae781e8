// Kernels on a random undirected graph, by as many threads as OpenMP is told to use:
// kernels bfs|cc|bc|pr NODES DEGREE ROUNDS. What they say does not depend on the threads.
#include "common.h"
#include <string.h>

static uint32_t nodes, *neighbours;
static uint64_t *row; // where the neighbours of each node begin

// Both ways of each edge, in rows.
static void make_graph(uint32_t degree) {
    uint64_t edges = (uint64_t)nodes * degree / 2;
    uint32_t(*ends)[2] = malloc(edges * sizeof *ends);
    row = calloc(nodes + 2, sizeof *row);
    for (uint64_t i = 0; i < edges; i++)
        for (int end = 0; end < 2; end++)
            row[(ends[i][end] = random_number() % nodes) + 2]++;
    for (uint32_t v = 0; v < nodes; v++)
        row[v + 2] += row[v + 1];
    neighbours = malloc(2 * edges * sizeof *neighbours);
    for (uint64_t i = 0; i < edges; i++) {
        neighbours[row[ends[i][0] + 1]++] = ends[i][1];
        neighbours[row[ends[i][1] + 1]++] = ends[i][0];
    }
    free(ends);
}

static uint32_t *depth, *frontier, *next;

// Depths from one node, level by level. Returns the number of levels; level l is in frontier from
// levels[l] to levels[l + 1].
static uint32_t search(uint32_t from, uint64_t *levels) {
    memset(depth, 0xff, nodes * sizeof *depth);
    depth[from] = 0;
    frontier[0] = from;
    levels[0] = 0;
    levels[1] = 1;
    uint32_t level = 0;
    while (levels[level] < levels[level + 1]) {
        uint64_t end = levels[level + 1];
#pragma omp parallel
        {
            enum { MINE = 1024 };
            uint32_t mine[MINE], many = 0;
#pragma omp for schedule(dynamic, 256) nowait
            for (uint64_t i = levels[level]; i < levels[level + 1]; i++) {
                uint32_t v = frontier[i];
                for (uint64_t e = row[v]; e < row[v + 1]; e++) {
                    uint32_t u = neighbours[e], none = UINT32_MAX;
                    if (depth[u] == UINT32_MAX &&
                        __atomic_compare_exchange_n(&depth[u], &none, level + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
                        mine[many++] = u;
                        if (many == MINE) {
                            memcpy(frontier + __atomic_fetch_add(&end, many, __ATOMIC_RELAXED), mine, sizeof mine);
                            many = 0;
                        }
                    }
                }
            }
            memcpy(frontier + __atomic_fetch_add(&end, many, __ATOMIC_RELAXED), mine, many * sizeof *mine);
        }
        levels[++level + 1] = end;
    }
    return level;
}

static uint64_t bfs(int rounds) {
    uint64_t sum = 0, levels[256];
    for (int i = 0; i < rounds; i++) {
        search(random_number() % nodes, levels);
        for (uint32_t v = 0; v < nodes; v++)
            sum += depth[v] == UINT32_MAX ? 0 : depth[v];
    }
    return sum;
}

// Components: each node takes the least label around it, and labels are followed to their roots.
static uint64_t cc(int rounds) {
    uint64_t sum = 0;
    for (int i = 0; i < rounds; i++) {
        for (uint32_t v = 0; v < nodes; v++)
            depth[v] = v;
        int changed = 1;
        while (changed) {
            changed = 0;
#pragma omp parallel for schedule(dynamic, 4096) reduction(| : changed)
            for (uint32_t v = 0; v < nodes; v++)
                for (uint64_t e = row[v]; e < row[v + 1]; e++) {
                    uint32_t mine = __atomic_load_n(&depth[v], __ATOMIC_RELAXED);
                    uint32_t its = __atomic_load_n(&depth[neighbours[e]], __ATOMIC_RELAXED);
                    if (its < mine && its == __atomic_load_n(&depth[its], __ATOMIC_RELAXED)) {
                        changed = 1;
                        __atomic_store_n(&depth[v], its, __ATOMIC_RELAXED);
                    }
                }
#pragma omp parallel for schedule(dynamic, 4096)
            for (uint32_t v = 0; v < nodes; v++)
                while (depth[v] != depth[depth[v]])
                    depth[v] = depth[depth[v]];
        }
        for (uint32_t v = 0; v < nodes; v++)
            sum += depth[v] == v;
    }
    return sum;
}

// Centrality by paths from some nodes: counts forward, shares backward, each node from its own row.
static uint64_t bc(int rounds) {
    double *paths = malloc(nodes * sizeof *paths), *share = malloc(nodes * sizeof *share), sum = 0;
    uint64_t levels[256];
    for (int i = 0; i < rounds; i++) {
        uint32_t from = random_number() % nodes, all = search(from, levels);
        memset(paths, 0, nodes * sizeof *paths);
        memset(share, 0, nodes * sizeof *share);
        paths[from] = 1;
        for (uint32_t level = 1; level < all; level++)
#pragma omp parallel for schedule(dynamic, 256)
            for (uint64_t at = levels[level]; at < levels[level + 1]; at++) {
                uint32_t v = frontier[at];
                double found = 0;
                for (uint64_t e = row[v]; e < row[v + 1]; e++)
                    if (depth[neighbours[e]] == level - 1)
                        found += paths[neighbours[e]];
                paths[v] = found;
            }
        for (uint32_t level = all; level-- > 0;)
#pragma omp parallel for schedule(dynamic, 256)
            for (uint64_t at = levels[level]; at < levels[level + 1]; at++) {
                uint32_t v = frontier[at];
                double mine = 0;
                for (uint64_t e = row[v]; e < row[v + 1]; e++) {
                    uint32_t u = neighbours[e];
                    if (depth[u] == level + 1)
                        mine += paths[v] / paths[u] * (1 + share[u]);
                }
                share[v] = mine;
            }
        for (uint32_t v = 0; v < nodes; v++)
            sum += share[v];
    }
    return (uint64_t)sum;
}

static uint64_t pr(int rounds) {
    float *rank = malloc(nodes * sizeof *rank), *part = malloc(nodes * sizeof *part);
    double sum = 0;
    for (uint32_t v = 0; v < nodes; v++)
        rank[v] = 1;
    for (int i = 0; i < rounds; i++) {
#pragma omp parallel for schedule(static)
        for (uint32_t v = 0; v < nodes; v++)
            part[v] = rank[v] / (float)(row[v + 1] - row[v] ? row[v + 1] - row[v] : 1);
#pragma omp parallel for schedule(dynamic, 4096)
        for (uint32_t v = 0; v < nodes; v++) {
            float in = 0;
            for (uint64_t e = row[v]; e < row[v + 1]; e++)
                in += part[neighbours[e]];
            rank[v] = 0.15f + 0.85f * in;
        }
    }
    for (uint32_t v = 0; v < nodes; v++)
        sum += rank[v];
    return (uint64_t)sum;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: %s bfs|cc|bc|pr NODES DEGREE ROUNDS\n", argv[0]);
        return 2;
    }
    const char *what = argv[1];
    nodes = (uint32_t)atol(argv[2]);
    make_graph((uint32_t)atoi(argv[3]));
    depth = malloc(nodes * sizeof *depth);
    frontier = malloc(nodes * sizeof *frontier);
    int rounds = atoi(argv[4]);
    uint64_t begin = now_ns();
    uint64_t told = !strcmp(what, "bfs") ? bfs(rounds) : !strcmp(what, "cc") ? cc(rounds) : !strcmp(what, "bc") ? bc(rounds) : pr(rounds);
    fprintf(stderr, "%.3f\n", (double)(now_ns() - begin) / 1e9);
    printf("%s %lu\n", what, told);
}
