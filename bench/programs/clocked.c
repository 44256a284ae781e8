// A chase that reads the clock every 200,000 loads, and says its pace at the end:
// clocked MEGABYTES SECONDS
#include "common.h"

struct line {
    struct line *next;
    char rest[56];
};

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    size_t lines = (size_t)atol(argv[1]) << 14;
    struct line *all = aligned_alloc(sizeof *all, lines * sizeof *all);
    uint32_t *order = malloc(lines * sizeof *order);
    one_cycle(order, lines);
    for (size_t i = 0; i < lines; i++)
        all[i].next = &all[order[i]];
    free(order);
    struct line *at = all;
    uint64_t begin = now_ns(), end = begin + (uint64_t)(atof(argv[2]) * 1e9), now, loads = 0;
    do {
        for (int i = 0; i < 200000; i++)
            at = at->next;
        loads += 200000;
    } while ((now = now_ns()) < end);
    printf("%.6g %p\n", (double)loads * 1e9 / (double)(now - begin), (void *)at);
}
