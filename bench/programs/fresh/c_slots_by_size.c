// expect: load=follow data=site level=DRAM memory=yes
// A chain by numbers of slots of 24 bytes: the number that is loaded is multiplied before it is
// used.
#include "fresh.h"

struct slot {
    uint32_t next, owner;
    uint64_t from, to;
};

__attribute__((noinline)) static uint32_t follow(const struct slot *slots, uint32_t at, long steps) {
    while (steps--)
        at = slots[at].next; // HOT
    return at;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    uint32_t count = 1;
    while ((uint64_t)count * sizeof(struct slot) < dram_bytes())
        count *= 2;
    struct slot *slots = malloc((size_t)count * sizeof *slots); // DATA
    for (uint32_t i = 0; i < count; i++)
        slots[i] = (struct slot){.next = (i * 1664525u + 1013904223u) & (count - 1), .owner = i};
    uint32_t at = 0;
    begin_work(2.5);
    while (goes_on())
        at = follow(slots, at, 10000);
    printf("%d\n", at < count);
}
