// expect: load=search data=site level=L3 memory=yes
// Breadth-first search of a random graph: the distances of neighbours lie anywhere.
#include "fresh.h"

static unsigned vertices;
static const unsigned degree = 16;

__attribute__((noinline)) static unsigned search(const unsigned *edges, int *distance, unsigned *queue, unsigned from) {
    memset(distance, 0xff, vertices * sizeof *distance);
    unsigned head = 0, tail = 0;
    queue[tail++] = from;
    distance[from] = 0;
    while (head < tail) {
        unsigned v = queue[head++];
        const unsigned *next = edges + (size_t)v * degree;
        int d = distance[v] + 1;
        for (unsigned i = 0; i < degree; i++) {
            unsigned w = next[i];
            if (distance[w] < 0) { // HOT
                distance[w] = d;
                queue[tail++] = w;
            }
        }
    }
    return tail;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    vertices = middle_bytes() / sizeof(int);
    unsigned *edges = malloc((size_t)vertices * degree * sizeof *edges);
    int *distance = malloc(vertices * sizeof *distance); // DATA
    unsigned *queue = malloc(vertices * sizeof *queue);
    for (size_t i = 0; i < (size_t)vertices * degree; i++)
        edges[i] = draw() % vertices;
    unsigned found = 0;
    begin_work(2.5);
    while (goes_on())
        found = search(edges, distance, queue, draw() % vertices);
    printf("%d\n", found > 0);
}
