// expect: load=next_of data=site level=DRAM|L3 memory=yes
// Ranks of the suffixes of a text in the order of its suffix array: each lies in another place.
#include "fresh.h"

struct suffixes {
    uint32_t *order, *rank;
    uint32_t count;
};

__attribute__((noinline)) static uint64_t next_of(const struct suffixes *s, uint32_t from, uint32_t to) {
    uint64_t sum = 0;
    for (uint32_t i = from; i < to; i++) {
        uint32_t at = s->order[i];
        sum += s->rank[at + 1 == s->count ? 0 : at + 1] ^ i; // HOT
    }
    return sum;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    struct suffixes s = {.count = 48 << 20};
    s.order = malloc(s.count * sizeof(uint32_t));
    s.rank = malloc(s.count * sizeof(uint32_t)); // DATA
    for (uint32_t i = 0; i < s.count; i++) {
        s.order[i] = draw() % s.count;
        s.rank[i] = i ^ 5;
    }
    uint64_t sum = 0;
    begin_work(2);
    while (goes_on()) {
        uint32_t from = draw() % (s.count - 100000);
        sum += next_of(&s, from, from + 100000);
    }
    printf("%d\n", sum > 0);
}
