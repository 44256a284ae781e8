// A key-value store in a search tree, asked by an open loop: requests come at their times, ready or not, and each one's
// latency counts from when it came. Tells the 95th percentile in its progress file, for every 16384 requests.
// usage: tree MIB WORK [PROGRESS-FILE [REQUESTS-A-SECOND]]; without a rate, one request follows the other.
#include "common.h"
#include <string.h>

enum { ROUND = 16384, NODES_A_REQUEST = 4 };

struct node {
    uint64_t key, value;
    struct node *child[2];
    uint64_t unused[4];
};

__attribute__((noinline)) static uint64_t find(const struct node *n, uint64_t key) {
    while (n && n->key != key)
        n = n->child[key > n->key];
    return n ? n->value : 0;
}

static struct node *balanced(struct node *pool, const uint32_t *place, uint64_t from, uint64_t to) {
    if (from == to)
        return 0;
    uint64_t middle = from + (to - from) / 2;
    struct node *n = &pool[place[middle]];
    n->key = 2 * middle;
    n->value = middle ^ 0x55;
    n->child[0] = balanced(pool, place, from, middle);
    n->child[1] = balanced(pool, place, middle + 1, to);
    return n;
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    struct arguments a = arguments(argc, argv);
    double rate = argc > 4 ? strtod(argv[4], 0) : 0;
    uint64_t nodes = (a.mib << 20) / sizeof(struct node);
    struct node *pool = area(a.mib << 20);
    uint32_t *place = malloc(nodes * sizeof *place);
    one_cycle(place, nodes);
    struct node *root = balanced(pool, place, 0, nodes);
    free(place);
    static uint64_t latency[ROUND], sorted[ROUND];
    uint64_t done = 0, sum = 0;
    double due = now_ns(), between = rate > 0 ? 1e9 / rate : 0;
    while (goes_on(done, a.work)) {
        if (rate > 0) {
            // Gaps between requests are exponential in steps: the sum of uniform numbers will do, and needs no libm.
            double gap = 0;
            for (int i = 0; i < 2; i++)
                gap += (double)(random_number() >> 11) / (1ull << 53);
            due += gap * between;
            while (now_ns() < (uint64_t)due)
                ;
        } else
            due = now_ns();
        for (int i = 0; i < NODES_A_REQUEST; i++)
            sum += find(root, random_number() % (2 * nodes));
        latency[done % ROUND] = now_ns() - (uint64_t)due;
        if (++done % ROUND == 0) {
            memcpy(sorted, latency, sizeof sorted);
            qsort(sorted, ROUND, sizeof *sorted, ascending);
            progress->latency_p95_ns = sorted[ROUND * 95 / 100];
        }
    }
    if (a.work)
        printf("tree %zu MiB, %lu requests, sum %lu\n", a.mib, done, sum);
    return 0;
}
