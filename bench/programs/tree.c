// A key-value store in a search tree, asked by an open loop: requests come at their times, ready or
// not, and each one's latency counts from when it came. Counts them by length in its progress file:
// sorting would keep the next requests waiting.
// usage: tree MIB WORK [PROGRESS-FILE [REQUESTS-A-SECOND [KEYS]]]; without a rate, one request
// follows the other.
#include "common.h"
#include "latency.h"

enum { KEYS = 4 };

static struct answers nobody_asks, *answers = &nobody_asks;

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

int main(int argc, char **argv) {
    struct arguments a = arguments(argc, argv);
    int keys = argc > 5 ? atoi(argv[5]) : KEYS;
    if (argc > 3)
        answers = shown(argv[3], 4096, sizeof *answers); // a page behind the progress
    double rate = argc > 4 ? strtod(argv[4], 0) : 0;
    uint64_t nodes = (a.mib << 20) / sizeof(struct node);
    struct node *pool = area(a.mib << 20);
    uint32_t *place = malloc(nodes * sizeof *place);
    one_cycle(place, nodes);
    struct node *root = balanced(pool, place, 0, nodes);
    free(place);
    uint64_t done = 0, sum = 0;
    // With a rate and a number of keys in each request, it sleeps until another program writes a 1
    // into the file's third word: all others may get ready meanwhile.
    while (rate > 0 && argc > 5 && !progress->go)
        usleep(1000);
    double due = now_ns(), between = rate > 0 ? 1e9 / rate : 0;
    while (goes_on(done, a.work)) {
        if (rate > 0) {
            // Gaps between requests are exponential in steps: the sum of uniform numbers will do,
            // and needs no libm.
            double gap = 0;
            for (int i = 0; i < 2; i++)
                gap += (double)(random_number() >> 11) / (1ull << 53);
            due += gap * between;
            while (now_ns() < (uint64_t)due)
                ;
        } else
            due = now_ns();
        for (int i = 0; i < keys; i++)
            sum += find(root, random_number() % (2 * nodes));
        answers->counts[part_of(now_ns() - (uint64_t)due)]++;
        done++;
    }
    if (a.work)
        printf("tree %zu MiB, %lu requests, sum %lu\n", a.mib, done, sum);
    return 0;
}
