// Lets running benchmark programs sleep (1) or go on (0), by their progress files; prints the time
// in seconds and the steps that all of them have done so far.
// usage: pause 0|1 FILE...
#include "../programs/common.h"

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: %s 0|1 FILE...\n", argv[0]);
        return 2;
    }
    uint64_t steps = 0;
    for (int i = 2; i < argc; i++) {
        progress_to(argv[i]);
        progress->pause = argv[1][0] == '1';
        steps += progress->steps;
    }
    printf("%.6f %lu\n", now_ns() / 1e9, steps);
    return 0;
}
