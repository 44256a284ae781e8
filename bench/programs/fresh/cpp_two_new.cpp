// expect: load=follow data=site level=DRAM memory=yes
// Two arrays that `new` makes on lines next to each other; the second one is followed.
#include "fresh.h"

struct Table {
    uint64_t *small, *large;
    uint64_t count;
    explicit Table(uint64_t count) : count(count) {
        small = new uint64_t[64]();
        large = new uint64_t[count]; // DATA
    }
};

__attribute__((noinline)) static uint64_t follow(const Table &table, uint64_t at, long steps) {
    while (steps--) {
        at = table.large[at]; // HOT
        table.small[at & 63]++;
    }
    return at;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    uint64_t count = 1;
    while (count * sizeof(uint64_t) < dram_bytes())
        count *= 2;
    Table table(count);
    // One cycle through all, by a generator of full period.
    for (uint64_t i = 0; i < count; i++)
        table.large[i] = (i * 6364136223846793005ull + 1442695040888963407ull) & (count - 1);
    uint64_t at = 1;
    begin_work(2.5);
    while (goes_on())
        at = follow(table, at, 10000);
    printf("%d\n", at < count);
}
