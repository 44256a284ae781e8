// How long a store's answers take, seen from outside while it runs (bench/programs/latency.h).
//
// usage: answers SECONDS FILE
//     prints seconds, requests, and the 50th, 95th and 99th percentile in microseconds
// usage: answers SECONDS FILE SPAN SCAVENGER...
//     lets the scavengers (their progress files) sleep every other SPAN of seconds. Prints for each
//     pair of spans: the 50th and 95th percentile beside them, and while they sleep; then for both
//     the 95th percentile of the parts of 10 ms in which no answer took longer than half a
//     millisecond (-: there was no such part), and the share of the other parts; their steps a
//     second
#include "../programs/latency.h"
#include "../programs/common.h"
#include <string.h>

enum { SCAVENGERS = 64 };
static const struct answers *answers;
static struct progress *scavenger[SCAVENGERS];
static uint32_t before[LENGTHS], after[LENGTHS], part_before[LENGTHS], part_after[LENGTHS], calm[LENGTHS];

static double percentile_of(const uint32_t *from, const uint32_t *to, double share) {
    uint64_t all = 0, above = 0;
    for (unsigned length = 0; length < LENGTHS; length++)
        all += to[length] - from[length];
    for (unsigned length = LENGTHS; length-- > 0;)
        if ((above += to[length] - from[length]) > all * (1 - share))
            return end_of(length) / 1e3;
    return 0;
}

static double percentile(double share) { return percentile_of(before, after, share); }

// Counts the answers of the given number of seconds; returns how long it really counted.
static double watch(double seconds) {
    uint64_t from = now_ns();
    memcpy(before, (const void *)answers->counts, sizeof before);
    rest(seconds);
    memcpy(after, (const void *)answers->counts, sizeof after);
    return (now_ns() - from) / 1e9;
}

// As `watch`, in parts: where an answer takes longer than anything here does to it, the machine was
// taken away, and what is behind it waits for its turn. Returns the share of such parts.
static double watch_parts(double seconds) {
    enum { PARTS_A_SECOND = 100 };
    const unsigned long_ago = part_of(500000);
    int parts = seconds * PARTS_A_SECOND, disturbed = 0;
    memset(calm, 0, sizeof calm);
    memcpy(before, (const void *)answers->counts, sizeof before);
    memcpy(part_after, before, sizeof before);
    for (int i = 0; i < parts; i++) {
        memcpy(part_before, part_after, sizeof part_before);
        rest(1.0 / PARTS_A_SECOND);
        memcpy(part_after, (const void *)answers->counts, sizeof part_after);
        int late = 0;
        for (unsigned length = long_ago; length < LENGTHS; length++)
            late |= part_after[length] != part_before[length];
        disturbed += late;
        for (unsigned length = 0; length < long_ago && !late; length++)
            calm[length] += part_after[length] - part_before[length];
    }
    memcpy(after, part_after, sizeof after);
    return (double)disturbed / parts;
}

static void in_turns(double seconds, double span, int count) {
    for (uint64_t end = now_ns() + (uint64_t)(seconds * 1e9); now_ns() < end;) {
        static const uint32_t none[LENGTHS];
        double found[2][4], pace = 0;
        for (int sleeps = 0; sleeps < 2; sleeps++) {
            uint64_t steps = 0;
            for (int i = 0; i < count; i++)
                scavenger[i]->pause = sleeps;
            rest(span / 4); // caches and guests find their places
            for (int i = 0; i < count; i++)
                steps -= scavenger[i]->steps;
            uint64_t from = now_ns();
            found[sleeps][3] = watch_parts(span);
            double took = (now_ns() - from) / 1e9;
            for (int i = 0; i < count; i++)
                steps += scavenger[i]->steps;
            found[sleeps][0] = percentile(0.5);
            found[sleeps][1] = percentile(0.95);
            found[sleeps][2] = percentile_of(none, calm, 0.95);
            if (!sleeps)
                pace = steps / took;
        }
        printf("%.3f %.3f %.3f %.3f ", found[0][0], found[0][1], found[1][0], found[1][1]);
        for (int sleeps = 0; sleeps < 2; sleeps++)
            printf(found[sleeps][2] ? "%.3f %.2f " : "- %.2f ", found[sleeps][2] ? found[sleeps][2] : found[sleeps][3], found[sleeps][3]);
        printf("%.0f\n", pace);
    }
}

int main(int argc, char **argv) {
    if (argc < 3 || argc == 4 || argc - 4 > SCAVENGERS) {
        fprintf(stderr, "usage: %s SECONDS FILE [SPAN SCAVENGER...]\n", argv[0]);
        return 2;
    }
    answers = shown(argv[2], 4096, sizeof *answers);
    for (int i = 4; i < argc; i++)
        scavenger[i - 4] = shown(argv[i], 0, sizeof **scavenger);
    double seconds = atof(argv[1]);
    if (argc > 4) {
        in_turns(seconds, atof(argv[3]), argc - 4);
        return 0;
    }
    double took = watch(seconds);
    uint64_t all = 0;
    for (unsigned length = 0; length < LENGTHS; length++)
        all += after[length] - before[length];
    printf("%.4f %lu %.3f %.3f %.3f\n", took, all, percentile(0.5), percentile(0.95), percentile(0.99));
    return 0;
}
