// Ten additions on a volatile long a task, no load that misses: what the artifact of MSH runs in
// the stalls of a pointer chase. Counts tasks; MIB is ignored.
#include "common.h"

enum { BATCH = 100000 };

int main(int argc, char **argv) {
    struct arguments a = arguments(argc, argv);
    volatile long sum = 0;
    uint64_t done = 0;
    while (goes_on(done, a.work)) {
        for (int i = 0; i < BATCH; i++) {
            sum += 1;
            sum += 2;
            sum += 3;
            sum += 4;
            sum += 5;
            sum += 6;
            sum += 7;
            sum += 8;
            sum += 9;
            sum += 10;
        }
        done += BATCH;
    }
    printf("tasks, %lu done, sum %ld\n", done, sum);
    return 0;
}
