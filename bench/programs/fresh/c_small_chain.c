// expect: load=next data=site level=L2 memory=yes
// A cycle of list nodes, all of which L2 holds, and not L1.
#include "fresh.h"

struct node {
    struct node *next;
    long rest[7];
};

__attribute__((noinline)) static struct node *next(struct node *at, long steps) {
    while (steps--)
        at = at->next; // HOT
    return at;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    size_t count = l2_bytes / 4 / sizeof(struct node);
    struct node *nodes = malloc(count * sizeof *nodes); // DATA
    size_t *order = malloc(count * sizeof *order);
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    for (size_t i = count - 1; i > 0; i--) {
        size_t other = draw() % i, swap = order[i];
        order[i] = order[other], order[other] = swap;
    }
    for (size_t i = 0; i < count; i++)
        nodes[order[i]].next = &nodes[order[(i + 1) % count]];
    struct node *at = nodes;
    begin_work(2);
    while (goes_on())
        at = next(at, 100000);
    printf("%d\n", at != 0);
}
