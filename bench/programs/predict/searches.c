// Searches: each step needs the one before, and each search the answer of the last.
#include "case.h"

enum { SEARCHES = 1 << 18, DEPTH = 20, FANOUT = 16, BTREE_LEVELS = 5 };

static uint64_t *sorted;
static size_t count;

// Steps without branches: the core cannot guess the way.
static uint64_t binary_search(void) {
    uint64_t key = 1;
    for (int i = 0; i < SEARCHES; i++) {
        const uint64_t *low = sorted;
        for (size_t half = count / 2; half; half /= 2)
            low += (low[half] <= key) * half;
        key = mixed(key + *low) % count;
    }
    return key;
}

// A complete tree, its nodes at random places.
struct node {
    uint32_t child[2];
    char rest[LINE - 8];
};
static struct node *nodes;

static void make_tree(void) {
    const size_t all = (size_t)1 << DEPTH;
    uint32_t *place = malloc(all * sizeof *place);
    for (size_t i = 0; i < all; i++)
        place[i] = i;
    for (size_t i = all - 1; i > 1; i--) {
        size_t j = 1 + random_number() % i;
        uint32_t t = place[i];
        place[i] = place[j], place[j] = t;
    }
    nodes = area(all * sizeof *nodes);
    for (size_t i = 1; i < all; i++)
        for (int side = 0; side < 2; side++)
            nodes[place[i]].child[side] = 2 * i + side < all ? place[2 * i + side] : 0;
    nodes[0].child[0] = place[1];
    free(place);
}

static uint64_t tree_search(void) {
    uint64_t key = 1;
    for (int i = 0; i < SEARCHES; i++) {
        uint32_t at = nodes[0].child[0];
        for (int level = 1; level < DEPTH; level++)
            at = nodes[at].child[key >> level & 1];
        key = mixed(key + at);
    }
    return key;
}

// Nodes of sixteen keys in two lines, of which a search reads both; the child's place follows from
// the keys' number.
static uint64_t *levels[BTREE_LEVELS];

static void make_btree(void) {
    size_t keys = FANOUT;
    for (int level = 0; level < BTREE_LEVELS; level++, keys *= FANOUT) {
        levels[level] = area(keys * sizeof(uint64_t));
        for (size_t i = 0; i < keys; i++)
            levels[level][i] = i % FANOUT << 60;
    }
}

static uint64_t btree_search(void) {
    uint64_t key = 1;
    for (int i = 0; i < SEARCHES; i++) {
        size_t node = 0;
        for (int level = 0; level < BTREE_LEVELS; level++) {
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

// For each step, the lines that it may need: twice as many as the step before, of all searches.
static char *halvings(char *text, int steps, int in_line) {
    char *end = text;
    for (int step = 0; step < steps; step++)
        end += sprintf(end, "%srand(%lu, mlp=1, n=%d)", step ? "; " : "", (size_t)LINE << step, SEARCHES);
    if (in_line)
        sprintf(end, "; rand(64, mlp=1, n=%d)", in_line * SEARCHES);
    return text;
}

int main(void) {
    char text[4096];
    count = MIB(64) / sizeof *sorted;
    sorted = area(MIB(64));
    for (size_t i = 0; i < count; i++)
        sorted[i] = i;
    // The last three steps stay in the line that the step before has loaded.
    timed("binary search in 64 MiB", binary_search, halvings(text, 20, 3));
    make_tree();
    timed("binary tree of 64 MiB", tree_search, halvings(text, DEPTH - 1, 0));
    make_btree();
    char *end = text;
    size_t keys = FANOUT;
    for (int level = 0; level < BTREE_LEVELS; level++, keys *= FANOUT)
        end += sprintf(end, "%srand(%lu, mlp=2, n=%d)", level ? "; " : "", keys * 8, 2 * SEARCHES);
    timed("B-tree of 8 MiB", btree_search, text);
    return 0;
}
