// expect: load=total_price data=site level=DRAM|L3 memory=yes
// One field of large structures in an array.
#include "fresh.h"

struct item {
    char description[200];
    double price;
    char more[112];
};

__attribute__((noinline)) static double total_price(const struct item *items, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += items[i].price; // HOT
    return sum;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    size_t count = dram_bytes() / sizeof(struct item);
    struct item *items = malloc(count * sizeof *items); // DATA
    for (size_t i = 0; i < count; i++)
        items[i].price = i;
    double sum = 0;
    begin_work(2);
    while (goes_on())
        sum += total_price(items, count);
    printf("%d\n", sum > 0);
}
