// expect: load=replay data=site level=L3 memory=yes
// Elements of a deque by random index.
#include "fresh.h"
#include <deque>

struct Event {
    uint64_t at, what, next, size;
};

__attribute__((noinline)) static uint64_t replay(const std::deque<Event> &events, uint64_t at, long steps) {
    while (steps--)
        at = events[at].next; // HOT
    return at;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    uint64_t count = 1;
    while (2 * count * sizeof(Event) <= middle_bytes())
        count *= 2;
    std::deque<Event> events;
    for (uint64_t i = 0; i < count; i++)
        events.push_back({i, i, (i * 6364136223846793005ull + 1442695040888963407ull) & (count - 1), 8}); // DATA
    uint64_t at = 0;
    begin_work(2.5);
    while (goes_on())
        at = replay(events, at, 10000);
    printf("%d\n", at < count);
}
