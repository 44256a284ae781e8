// expect: load=get|_M_transfer data=site level=DRAM|L3 memory=yes
// A cache that throws out what was used least recently: a list and a map into it.
#include "fresh.h"
#include <list>
#include <unordered_map>

class Cache {
    struct Entry {
        uint64_t key;
        char body[120];
    };
    std::list<Entry> order;
    std::unordered_map<uint64_t, std::list<Entry>::iterator> index;
    size_t capacity;

  public:
    explicit Cache(size_t capacity) : capacity(capacity) { index.reserve(capacity); } // DATA
    __attribute__((noinline)) bool get(uint64_t key) {
        auto found = index.find(key); // HOT
        if (found == index.end())
            return false;
        order.splice(order.begin(), order, found->second); // HOT
        return found->second->body[0] == 'b';              // HOT
    }
    __attribute__((noinline)) void put(uint64_t key) {
        if (order.size() == capacity) {
            index.erase(order.back().key);
            order.pop_back();
        }
        order.push_front(Entry{key, "body"}); // DATA
        index[key] = order.begin();           // DATA
    }
};

int main(int argc, char **argv) {
    sizes(argc, argv);
    const size_t capacity = 1 << 20;
    Cache cache(capacity);
    for (uint64_t i = 0; i < capacity; i++)
        cache.put(i);
    long hits = 0;
    begin_work(3);
    while (goes_on())
        for (int i = 0; i < 1000; i++)
            hits += cache.get(draw() % capacity);
    printf("%ld\n", hits & 1);
}
