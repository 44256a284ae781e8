// expect: load=score data=site level=DRAM|L3 memory=yes
// Look-ups in an unordered_map of numbers.
#include "fresh.h"
#include <unordered_map>

__attribute__((noinline)) static uint64_t score(const std::unordered_map<uint64_t, uint64_t> &points, int draws, uint64_t players) {
    uint64_t sum = 0;
    for (int i = 0; i < draws; i++) {
        auto found = points.find(draw() % players * 31); // HOT
        if (found != points.end())
            sum += found->second; // HOT
    }
    return sum;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    const uint64_t players = 4 << 20;
    std::unordered_map<uint64_t, uint64_t> points;
    points.reserve(players); // DATA
    for (uint64_t i = 0; i < players; i++)
        points.emplace(i * 31, i); // DATA
    uint64_t sum = 0;
    begin_work(3);
    while (goes_on())
        sum += score(points, 10000, players);
    printf("%d\n", sum > 0);
}
