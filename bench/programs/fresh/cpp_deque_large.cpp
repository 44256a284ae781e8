// expect: load=hop data=site level=DRAM|L3 memory=yes
// A deque of 64 MiB, gone through by what its elements say.
#include "fresh.h"
#include <deque>

__attribute__((noinline)) static uint64_t hop(const std::deque<uint64_t> &next, uint64_t at, long steps) {
    while (steps--)
        at = next[at]; // HOT
    return at;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    uint64_t count = (64ull << 20) / sizeof(uint64_t);
    std::deque<uint64_t> next;
    for (uint64_t i = 0; i < count; i++)
        next.push_back((i * 6364136223846793005ull + 1442695040888963407ull) & (count - 1)); // DATA
    uint64_t at = 0;
    begin_work(2.5);
    while (goes_on())
        at = hop(next, at, 10000);
    printf("%d\n", at < count);
}
