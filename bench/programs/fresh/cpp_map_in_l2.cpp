// expect: load=follow|_M_lower_bound|lower_bound|find data=site level=L2 memory=yes
// A std::map whose nodes take a quarter of L2: each value is the key of the next search.
#include "fresh.h"
#include <map>

__attribute__((noinline)) static uint64_t follow(const std::map<uint64_t, uint64_t> &map, uint64_t key, long steps) {
    while (steps--)
        key = map.find(key)->second; // HOT
    return key;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    uint64_t count = 1;
    while (count * 2 * 64 <= l2_bytes / 4)
        count *= 2;
    std::map<uint64_t, uint64_t> map;
    uint64_t key = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t next = (key * 6364136223846793005ull + 1442695040888963407ull) & (count - 1);
        map.emplace(key, next); // DATA
        key = next;
    }
    begin_work(2.5);
    while (goes_on())
        key = follow(map, key, 1000);
    printf("%d\n", key < count);
}
