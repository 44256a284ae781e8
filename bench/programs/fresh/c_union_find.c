// expect: load=find_root data=site level=DRAM memory=yes
// Union-find over many elements.
#include "fresh.h"

static uint32_t *parent;

__attribute__((noinline)) static uint32_t find_root(uint32_t x) {
    while (parent[x] != x) {             // HOT
        parent[x] = parent[parent[x]];   // HOT
        x = parent[x];                   // HOT
    }
    return x;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    uint32_t count = dram_bytes() / sizeof *parent;
    parent = malloc((size_t)count * sizeof *parent); // DATA
    for (uint32_t i = 0; i < count; i++)
        parent[i] = i;
    begin_work(2.5);
    while (goes_on())
        for (int i = 0; i < 1000; i++) {
            uint32_t a = find_root(draw() % count), b = find_root(draw() % count);
            if (a != b)
                parent[a] = b;
        }
    printf("%d\n", find_root(7) < count);
}
