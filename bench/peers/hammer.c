// A neighbour that keeps memory busy: writes through a large area for ever, on one CPU.
// usage: hammer BYTES CPU
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: hammer BYTES CPU\n");
        return 2;
    }
    size_t bytes = strtoull(argv[1], 0, 0);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(argv[2]), &set);
    char *area = malloc(bytes);
    if (!area || sched_setaffinity(0, sizeof set, &set))
        return perror("hammer"), 1;
    for (int i = 0;; i++)
        memset(area, i, bytes);
}
