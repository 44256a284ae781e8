// expect: load=memcmp|compare|lookup data=site level=DRAM|L3 memory=yes
// A std::map by names that are too long to lie in the string itself.
#include "fresh.h"
#include <map>
#include <string>
#include <vector>

__attribute__((noinline)) static long lookup(const std::map<std::string, long> &prices, const std::string &name) {
    auto found = prices.find(name); // HOT
    return found == prices.end() ? 0 : found->second;
}

static std::string name_of(uint64_t i) {
    return "a product with the number " + std::to_string(i * 2654435761u % 1000000007); // DATA
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    const int count = 700000;
    std::map<std::string, long> prices;
    for (int i = 0; i < count; i++)
        prices[name_of(i)] = i; // DATA
    std::vector<std::string> asked;
    for (int i = 0; i < 1000; i++)
        asked.push_back(name_of(draw() % count));
    long sum = 0;
    begin_work(4);
    while (goes_on()) {
        for (auto &name : asked)
            sum += lookup(prices, name);
        for (auto &name : asked)
            name = name_of(draw() % count);
    }
    printf("%d\n", sum > 0);
}
