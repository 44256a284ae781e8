// A key-value store in a search tree. Requests come as requests.h says.
// usage: tree MIB WORK [PROGRESS-FILE [REQUESTS-A-SECOND [KEYS]]]
#include "common.h"
#include "requests.h"

enum { KEYS = 4 };

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
    struct requests r = requests(argc, argv, KEYS);
    uint64_t nodes = (a.mib << 20) / sizeof(struct node);
    struct node *pool = area(a.mib << 20);
    uint32_t *place = malloc(nodes * sizeof *place);
    one_cycle(place, nodes);
    struct node *root = balanced(pool, place, 0, nodes);
    free(place);
    first_request(&r);
    uint64_t done = 0, sum = 0;
    while (goes_on(done, a.work)) {
        next_request(&r);
        for (int i = 0; i < r.size; i++)
            sum += find(root, random_number() % (2 * nodes));
        answered(&r);
        done++;
    }
    if (a.work)
        printf("tree %zu MiB, %lu requests, sum %lu\n", a.mib, done, sum);
    return 0;
}
