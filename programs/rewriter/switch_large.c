// A table of hundreds of entries, most of them to places of their own, in a loop that goes through
// it out of order.
//# twins: step
#include <stdio.h>

#define ONE(n) case n: x = x * ((n) | 1) + (n); y ^= x >> ((n) % 13); break;
#define FOUR(n) ONE(n) ONE(n + 1) ONE(n + 2) ONE(n + 3)
#define SIXTEEN(n) FOUR(n) FOUR(n + 4) FOUR(n + 8) FOUR(n + 12)
#define MANY(n) SIXTEEN(n) SIXTEEN(n + 16) SIXTEEN(n + 32) SIXTEEN(n + 48)

__attribute__((noinline)) unsigned step(unsigned n, unsigned x) {
    unsigned y = 0;
    switch (n) {
        MANY(0) MANY(64) MANY(128) MANY(192)
    case 300: x = ~x; break;
    default: x += 1000003;
    }
    return x + y;
}
int main(void) {
    unsigned x = 1;
    for (unsigned i = 0; i < 2000; i++) {
        x = step((i * 37) % 310, x);
        if (i % 100 == 0) printf("%u\n", x);
    }
    return x == 0;
}
