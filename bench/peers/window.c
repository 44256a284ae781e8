// Looks at the progress files of running benchmark programs for a while: how many steps each one
// did.
// usage: window SECONDS FILE...   waits (up to two minutes) until all of them work, then a little
// for them to settle; prints the time and the steps of each, on a line; -1 if they never all worked
#include "../programs/common.h"
#include <time.h>

int main(int argc, char **argv) {
    enum { MOST = 128 };
    static struct progress *told[MOST];
    static uint64_t before[MOST];
    int count = argc - 2;
    if (count < 1 || count > MOST) {
        fprintf(stderr, "usage: %s SECONDS FILE...\n", argv[0]);
        return 2;
    }
    for (int i = 0; i < count; i++) {
        progress_to(argv[2 + i]);
        told[i] = progress;
    }
    for (double waited = 0;; waited += 0.05) {
        int working = 0;
        for (int i = 0; i < count; i++)
            working += told[i]->working && told[i]->steps;
        if (working == count)
            break;
        if (waited > 120) {
            printf("-1\n");
            return 1;
        }
        rest(0.05);
    }
    rest(0.3);
    uint64_t from = now_ns();
    for (int i = 0; i < count; i++)
        before[i] = told[i]->steps;
    rest(atof(argv[1]));
    uint64_t to = now_ns();
    printf("%.6f", (to - from) / 1e9);
    for (int i = 0; i < count; i++)
        printf(" %lu", told[i]->steps - before[i]);
    printf("\n");
    return 0;
}
