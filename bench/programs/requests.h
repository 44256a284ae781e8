// Requests that come at their times, ready or not: an open loop. Each one's latency counts from
// when it came. They are counted by length in the progress file: sorting would keep the next ones
// waiting.
//
// Arguments behind the progress file: REQUESTS-A-SECOND (without it one request follows the other),
// KEYS (how much each asks for).
#include "latency.h"

static struct answers nobody_asks, *answers = &nobody_asks;

struct requests {
    double due, between;
    int size, waits;
};

static struct requests requests(int argc, char **argv, int size) {
    double rate = argc > 4 ? strtod(argv[4], 0) : 0;
    if (argc > 3)
        answers = shown(argv[3], 4096, sizeof *answers); // a page behind the progress
    return (struct requests){0, rate > 0 ? 1e9 / rate : 0, argc > 5 ? atoi(argv[5]) : size, argc > 5};
}

// Once the data is made. With a rate and a size it sleeps until another program writes a 1 into the
// file's third word: all others may get ready meanwhile.
static void first_request(struct requests *r) {
    while (r->between && r->waits && !progress->go)
        usleep(1000);
    r->due = now_ns();
}

static inline void next_request(struct requests *r) {
    if (!r->between) {
        r->due = now_ns();
        return;
    }
    // Gaps between requests are exponential in steps: the sum of uniform numbers will do, and needs
    // no libm.
    double gap = 0;
    for (int i = 0; i < 2; i++)
        gap += (double)(random_number() >> 11) / (1ull << 53);
    r->due += gap * r->between;
    while (now_ns() < (uint64_t)r->due)
        ;
}

static inline void answered(const struct requests *r) {
    answers->counts[part_of(now_ns() - (uint64_t)r->due)]++;
}
