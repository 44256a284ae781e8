// expect: load=step|pop|adjust_heap|push data=site level=L3|DRAM memory=yes
// A priority queue of events: each pop sifts through a heap that is larger than L2.
#include "fresh.h"
#include <queue>
#include <vector>

struct Event {
    double time;
    uint64_t what, who;
    bool operator<(const Event &other) const { return time > other.time; }
};

__attribute__((noinline)) static uint64_t step(std::priority_queue<Event> &queue) {
    Event event = queue.top();
    queue.pop(); // HOT
    queue.push({event.time + 1 + draw() % 1000, event.what + 1, event.who});
    return event.who;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    const size_t count = 4 << 20;
    std::vector<Event> storage;
    storage.reserve(count + 1); // DATA
    std::priority_queue<Event> queue(std::less<Event>(), std::move(storage));
    for (size_t i = 0; i < count; i++)
        queue.push({double(draw() % 1000), 0, i});
    uint64_t sum = 0;
    begin_work(3);
    while (goes_on())
        for (int i = 0; i < 1000; i++)
            sum += step(queue);
    printf("%d\n", sum > 0);
}
