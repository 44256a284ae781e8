// expect: load=follow data=site level=L2 memory=yes
// A hash table that takes a small part of L2: what is found says what is looked up next.
#include "fresh.h"

struct entry {
    uint32_t key, next;
};

__attribute__((noinline)) static uint32_t follow(const struct entry *table, uint32_t mask, uint32_t key, long steps) {
    while (steps--) {
        uint32_t at = key * 2654435761u & mask;
        while (table[at].key != key) // HOT
            at = (at + 1) & mask;
        key = table[at].next; // HOT
    }
    return key;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    uint32_t slots = 1;
    while (slots * 2 * sizeof(struct entry) <= l2_bytes / 6)
        slots *= 2;
    struct entry *table = calloc(slots, sizeof *table); // DATA
    uint32_t count = slots / 2, *keys = malloc(count * sizeof *keys);
    for (uint32_t i = 0; i < count; i++)
        keys[i] = (i + 1) * 2 + draw() % 2;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = keys[i] * 2654435761u & (slots - 1);
        while (table[at].key)
            at = (at + 1) & (slots - 1);
        table[at] = (struct entry){keys[i], keys[(i * 2891336453ull + 7) % count]};
    }
    uint32_t key = keys[0];
    free(keys);
    begin_work(2.5);
    while (goes_on())
        key = follow(table, slots - 1, key, 10000);
    printf("%d\n", key > 0);
}
