// expect: load=contains data=site level=DRAM memory=yes
// A search tree whose nodes come from an arena of the program's own, which it maps.
#include "fresh.h"
#include <sys/mman.h>

struct tree {
    struct tree *left, *right;
    uint64_t key, value;
};

static char *arena, *arena_end;

static void arena_open(size_t bytes) {
    arena = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); // DATA
    arena_end = arena + bytes;
}

static void *arena_take(size_t bytes) {
    if (arena + bytes > arena_end)
        abort();
    void *taken = arena;
    arena += bytes;
    return taken;
}

static struct tree *build(uint64_t from, uint64_t to) {
    if (from >= to)
        return 0;
    uint64_t middle = (from + to) / 2;
    struct tree *node = arena_take(sizeof *node);
    node->key = middle;
    node->left = build(from, middle);
    node->right = build(middle + 1, to);
    return node;
}

__attribute__((noinline)) static int contains(const struct tree *at, uint64_t key) {
    while (at) {
        if (at->key == key) // HOT
            return 1;
        at = key < at->key ? at->left : at->right; // HOT
    }
    return 0;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    uint64_t count = dram_bytes() / sizeof(struct tree);
    arena_open((count + 1) * sizeof(struct tree));
    struct tree *root = build(0, count);
    long found = 0;
    begin_work(3);
    while (goes_on())
        for (int i = 0; i < 1000; i++)
            found += contains(root, draw() % count);
    printf("%d\n", found > 0);
}
