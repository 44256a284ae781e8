// How long answers took: counts by length, in a file behind the progress, for others to read while
// the program runs.
#include <stdint.h>

// Counters in each doubling of nanoseconds.
enum { PARTS = 64, LENGTHS = 40 * PARTS };

struct answers {
    volatile uint32_t counts[LENGTHS];
};

static inline unsigned part_of(uint64_t ns) {
    if (ns < PARTS)
        return ns;
    unsigned octave = 63 - __builtin_clzll(ns) - 5; // six bits from the highest on
    unsigned part = octave * (PARTS / 2) + (ns >> octave);
    return part < LENGTHS ? part : LENGTHS - 1;
}

static inline uint64_t end_of(unsigned part) {
    unsigned octave = part < PARTS ? 0 : part / (PARTS / 2) - 1;
    return (uint64_t)(part - octave * (PARTS / 2) + 1) << octave;
}
