// expect: load=refine data=site level=L2 memory=yes
// Block after block of a large array, each read many times in no order: a block fits L2.
#include "fresh.h"

__attribute__((noinline)) static uint32_t refine(const uint32_t *block, uint32_t at, long steps) {
    while (steps--)
        at = block[at]; // HOT
    return at;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    size_t block = l2_bytes / 4 / sizeof(uint32_t), blocks = dram_bytes() / (block * sizeof(uint32_t));
    uint32_t *cycle = malloc(block * sizeof *cycle), *order = malloc(block * sizeof *order);
    for (size_t i = 0; i < block; i++)
        order[i] = i;
    for (size_t i = block - 1; i > 0; i--) {
        size_t other = draw() % i;
        uint32_t swap = order[i];
        order[i] = order[other], order[other] = swap;
    }
    for (size_t i = 0; i < block; i++)
        cycle[order[i]] = order[(i + 1) % block];
    uint32_t *all = malloc(blocks * block * sizeof *all); // DATA
    for (size_t i = 0; i < blocks; i++)
        memcpy(all + i * block, cycle, block * sizeof *all);
    uint32_t at = 0;
    begin_work(3);
    for (size_t i = 0; goes_on(); i = (i + 1) % blocks)
        at = refine(all + i * block, at, 20 * block);
    printf("%d\n", at < block);
}
