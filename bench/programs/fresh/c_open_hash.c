// expect: load=lookup data=site level=DRAM memory=yes
// An open hash table with linear probing.
#include "fresh.h"

struct slot {
    uint64_t key, value;
};
struct table {
    struct slot *slots;
    uint64_t mask;
};

static uint64_t hash(uint64_t key) { return key * 0x9e3779b97f4a7c15ull >> 20; }

__attribute__((noinline)) static uint64_t lookup(const struct table *table, uint64_t key) {
    uint64_t at = hash(key) & table->mask;
    while (table->slots[at].key) {         // HOT
        if (table->slots[at].key == key)   // HOT
            return table->slots[at].value; // HOT
        at = (at + 1) & table->mask;
    }
    return 0;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    uint64_t slots = 1;
    while (slots * sizeof(struct slot) < dram_bytes())
        slots *= 2;
    struct table table = {.mask = slots - 1};
    table.slots = calloc(slots, sizeof *table.slots); // DATA
    uint64_t key = 1;
    for (uint64_t i = 0; i < slots / 8; i++) {
        key = i * 7 + 1;
        uint64_t at = hash(key) & table.mask;
        while (table.slots[at].key)
            at = (at + 1) & table.mask;
        table.slots[at] = (struct slot){key, i};
    }
    uint64_t sum = 0;
    begin_work(3);
    while (goes_on())
        for (int i = 0; i < 1000; i++)
            sum += lookup(&table, draw() % (slots / 8) * 7 + 1);
    printf("%d\n", sum > 0);
}
