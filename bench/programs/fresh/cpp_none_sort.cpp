// expect: memory=no
// Small arrays, sorted one after the other.
#include "fresh.h"
#include <algorithm>
#include <array>

int main(int argc, char **argv) {
    sizes(argc, argv);
    std::array<uint32_t, 512> values;
    uint64_t sum = 0;
    begin_work(2);
    while (goes_on())
        for (int i = 0; i < 100; i++) {
            for (auto &value : values)
                value = draw();
            std::sort(values.begin(), values.end());
            sum += values[17];
        }
    printf("%d\n", sum > 0);
}
