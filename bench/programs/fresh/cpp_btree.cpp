// expect: load=find data=site level=DRAM memory=yes
// A B-tree, made in one go; its leaves are more than any cache holds.
#include "fresh.h"
#include <vector>

enum { KEYS = 31 };
struct Page {
    uint64_t keys[KEYS];
    uint64_t count;
    Page *children[KEYS + 1];
};

static Page *build(uint64_t from, uint64_t to, uint64_t leaf) {
    Page *page = new Page; // DATA
    uint64_t n = to - from;
    page->count = n <= KEYS ? n : KEYS;
    for (uint64_t i = 0; i < page->count; i++)
        page->keys[i] = n <= KEYS ? from + i : from + n / (KEYS + 1) * (i + 1);
    for (uint64_t i = 0; i <= page->count; i++) {
        page->children[i] = nullptr;
        if (n > KEYS) {
            uint64_t low = i ? page->keys[i - 1] + 1 : from;
            uint64_t high = i < page->count ? page->keys[i] : to;
            page->children[i] = low < high ? build(low, high, leaf) : nullptr;
        }
    }
    return page;
}

__attribute__((noinline)) static bool find(const Page *at, uint64_t key) {
    while (at) {
        uint64_t i = 0;
        while (i < at->count && at->keys[i] < key) // HOT
            i++;
        if (i < at->count && at->keys[i] == key) // HOT
            return true;
        at = at->children[i]; // HOT
    }
    return false;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    uint64_t keys = dram_bytes() / sizeof(Page) * KEYS / 2;
    Page *root = build(0, keys, KEYS);
    long found = 0;
    begin_work(3);
    while (goes_on())
        for (int i = 0; i < 1000; i++)
            found += find(root, draw() % keys);
    printf("%d\n", found > 0);
}
