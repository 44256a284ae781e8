// A key-value store in a trie of B+ trees, as Masstree is one: eight bytes of a key are a slice,
// each layer of the trie is a tree of slices. Keys are a user and one of the user's items: the tree
// of users leads to a small tree for each user, that one to the record. Half of the operations read
// a record, half update it. Requests come as requests.h says.
// usage: masstree MIB WORK [PROGRESS-FILE [REQUESTS-A-SECOND [KEYS]]]
#include "common.h"
#include "requests.h"

enum { KEYS = 4, FANOUT = 15, ITEMS = 8 };

struct node {
    // Even while nobody changes the node; readers look at it before and after, as Masstree's do.
    volatile uint64_t version;
    uint32_t count, is_leaf;
    uint64_t key[FANOUT];
    union {
        struct node *child[FANOUT + 1];
        void *value[FANOUT + 1];
    };
} __attribute__((aligned(64)));

struct record {
    uint64_t user, item, data[6];
} __attribute__((aligned(64)));

static char *pool, *pool_end;

static void *taken(size_t bytes) {
    void *place = pool;
    pool += bytes;
    return place;
}

static struct node *new_node(int is_leaf) {
    struct node *n = taken(sizeof *n);
    n->is_leaf = is_leaf;
    return n;
}

// How many of the node's keys are not above the slice.
static inline uint32_t rank(const struct node *n, uint64_t slice) {
    uint32_t i = 0;
    while (i < n->count && n->key[i] <= slice)
        i++;
    return i;
}

__attribute__((noinline)) static void *find(const struct node *n, uint64_t slice) {
    for (;;) {
        uint64_t version = n->version;
        uint32_t i = rank(n, slice);
        void *found = n->is_leaf ? (i && n->key[i - 1] == slice ? n->value[i - 1] : 0) : n->child[i];
        if (n->version != version)
            continue;
        if (n->is_leaf || !found)
            return found;
        n = found;
    }
}

static void put_at(struct node *n, uint32_t at, uint64_t key, void *value) {
    int behind = !n->is_leaf; // an inner node's child lies behind its key
    for (uint32_t i = n->count; i > at; i--) {
        n->key[i] = n->key[i - 1];
        n->value[i + behind] = n->value[i - 1 + behind];
    }
    n->key[at] = key;
    n->value[at + behind] = value;
    n->count++;
}

// Adds a slice that is not there. A node that was full gives its upper half to a new one, which is
// returned with its first slice.
static struct node *added(struct node *n, uint64_t slice, void *value, uint64_t *first) {
    uint32_t at = rank(n, slice);
    if (!n->is_leaf) {
        value = added(n->child[at], slice, value, &slice);
        if (!value)
            return 0;
    }
    n->version++;
    struct node *upper = 0;
    if (n->count == FANOUT) {
        upper = new_node(n->is_leaf);
        uint32_t half = FANOUT / 2, from = n->is_leaf ? half : half + 1;
        *first = n->key[half];
        for (uint32_t i = from; i < FANOUT; i++) {
            upper->key[i - from] = n->key[i];
            upper->value[i - from] = n->value[i];
        }
        if (!n->is_leaf)
            upper->child[FANOUT - from] = n->child[FANOUT];
        upper->count = FANOUT - from;
        n->count = half;
    }
    struct node *into = upper && slice >= *first ? upper : n;
    put_at(into, rank(into, slice), slice, value);
    n->version++;
    return upper;
}

static void add(struct node **root, uint64_t slice, void *value) {
    uint64_t first;
    struct node *upper = added(*root, slice, value, &first);
    if (!upper)
        return;
    struct node *above = new_node(0);
    above->count = 1;
    above->key[0] = first;
    above->child[0] = *root;
    above->child[1] = upper;
    *root = above;
}

// Users' numbers come in no order.
static inline uint64_t user_of(uint64_t number) { return (number + 1) * 0x9e3779b97f4a7c15ull; }

int main(int argc, char **argv) {
    struct arguments a = arguments(argc, argv);
    struct requests r = requests(argc, argv, KEYS);
    size_t bytes = a.mib << 20;
    pool = area(bytes);
    pool_end = pool + bytes;
    struct node *root = new_node(1);
    uint64_t users = 0;
    // What one user takes, and splits up to the root.
    const size_t each = sizeof(struct node) + ITEMS * sizeof(struct record) + 16 * sizeof(struct node);
    for (; pool + each < pool_end; users++) {
        struct node *items = new_node(1);
        for (uint64_t item = 0; item < ITEMS; item++) {
            struct record *r = taken(sizeof *r);
            *r = (struct record){user_of(users), item, {users ^ item}};
            add(&items, item, r);
        }
        add(&root, user_of(users), items);
    }
    first_request(&r);
    uint64_t done = 0, sum = 0;
    while (users && goes_on(done, a.work)) {
        next_request(&r);
        for (int i = 0; i < r.size; i++) {
            uint64_t random = random_number();
            struct node *items = find(root, user_of((random >> 8) % users));
            struct record *record = find(items, random % ITEMS);
            if (random >> 63)
                record->data[1 + random % 5] += done;
            else
                sum += record->data[0] + record->data[1];
        }
        answered(&r);
        done++;
    }
    if (a.work)
        printf("masstree %zu MiB, %lu users, %lu requests, sum %lu\n", a.mib, users, done, sum);
    return 0;
}
