// Searches: each step needs the one before, and each search the answer of the last.
#include "case.h"

enum { SEARCHES = 1 << 18, DEPTH = 20, FANOUT = 16, BTREE_LEVELS = 5 };

static uint64_t *sorted;
static size_t count, searches;

static void make_sorted(size_t bytes) {
    count = bytes / sizeof *sorted;
    sorted = huge_area(bytes);
    for (size_t i = 0; i < count; i++)
        sorted[i] = i;
}

// Steps without branches: the core cannot guess the way.
static uint64_t binary_search(void) {
    uint64_t key = 1;
    for (size_t i = 0; i < searches; i++) {
        const uint64_t *low = sorted;
        for (size_t left = count; left > 1; left -= left / 2)
            low += (low[left / 2] <= key) * (left / 2);
        // With the number of the search: a key alone would lead into a short cycle of keys.
        key = mixed(*low + i) % count;
    }
    return key;
}

// A complete tree, its nodes at random places.
struct node {
    uint32_t child[2];
    char rest[LINE - 8];
};
static struct node *nodes;
static int depth;

static void make_tree(int levels) {
    depth = levels;
    const size_t all = (size_t)1 << depth;
    uint32_t *place = malloc(all * sizeof *place);
    for (size_t i = 0; i < all; i++)
        place[i] = i;
    for (size_t i = all - 1; i > 1; i--) {
        size_t j = 1 + random_number() % i;
        uint32_t t = place[i];
        place[i] = place[j], place[j] = t;
    }
    nodes = huge_area(all * sizeof *nodes);
    for (size_t i = 1; i < all; i++)
        for (int side = 0; side < 2; side++)
            nodes[place[i]].child[side] = 2 * i + side < all ? place[2 * i + side] : 0;
    nodes[0].child[0] = place[1];
    free(place);
}

static uint64_t tree_search(void) {
    uint64_t key = 1;
    for (size_t i = 0; i < searches; i++) {
        uint32_t at = nodes[0].child[0];
        for (int level = 1; level < depth; level++)
            at = nodes[at].child[key >> level & 1];
        key = mixed(key + at);
    }
    return key;
}

// Nodes of sixteen keys in two lines, of which a search reads both; the child's place follows from
// the keys' number.
static uint64_t *levels[BTREE_LEVELS];
static int btree_levels;

static void make_btree(int all) {
    btree_levels = all;
    size_t keys = FANOUT;
    for (int level = 0; level < all; level++, keys *= FANOUT) {
        levels[level] = huge_area(keys * sizeof(uint64_t));
        for (size_t i = 0; i < keys; i++)
            levels[level][i] = i % FANOUT << 60;
    }
}

static uint64_t btree_search(void) {
    uint64_t key = 1;
    for (size_t i = 0; i < searches; i++) {
        size_t node = 0;
        for (int level = 0; level < btree_levels; level++) {
            const uint64_t *keys = levels[level] + node * FANOUT;
            uint64_t part = key << 4 * level, place = 0;
            for (int k = 1; k < FANOUT; k++)
                place += keys[k] <= part;
            node = node * FANOUT + place;
        }
        key = mixed(key + node);
    }
    return key;
}

// What a step takes in the nearest cache, of searches with a few steps.
static double step(body search, double steps) {
    searches = SEARCHES * 4;
    double ns = work(search, searches * steps);
    searches = SEARCHES;
    return ns;
}

int main(void) {
    // Steps to one line, and three more inside it.
    make_sorted(SMALL);
    double ns = step(binary_search, 11);
    make_sorted(MIB(64));
    timed("binary search in 64 MiB", binary_search, "search(64M, n=262144, work=%.1fns)", 23 * ns);
    // The steps of this one do not share a few sets of a cache.
    make_sorted(MIB(61));
    timed("binary search in 61 MiB", binary_search, "search(61M, n=262144, work=%.1fns)", 23 * ns);
    make_tree(8);
    ns = step(tree_search, 7);
    make_tree(DEPTH);
    // Of the last level a search finds the place, and reads nothing.
    timed("binary tree of 64 MiB", tree_search, "tree(%lu, 2, 64, n=262144, work=%.1fns)",
          (((size_t)1 << (DEPTH - 1)) - 1) * LINE, (DEPTH - 1) * ns);
    make_btree(2);
    ns = step(btree_search, 2);
    make_btree(BTREE_LEVELS);
    size_t bytes = 0;
    for (int level = 0, nodes = 1; level < BTREE_LEVELS; level++, nodes *= FANOUT)
        bytes += nodes * 2 * LINE;
    timed("B-tree of 8 MiB", btree_search, "tree(%lu, 16, 128, n=262144, work=%.1fns)", bytes,
          BTREE_LEVELS * ns);
    return 0;
}
