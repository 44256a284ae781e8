// Linked lists: nodes of a line each, linked at random or in the order of their addresses.
#include "case.h"

struct node {
    struct node *next;
    uint64_t value;
    char rest[LINE - 16];
};

static struct node *nodes;
static size_t count, passes;

// Each list has its own part of the memory.
static void linked_at_random(size_t bytes, size_t lists) {
    nodes = huge_area(bytes);
    count = bytes / sizeof *nodes / lists;
    uint32_t *order = malloc(count * sizeof *order);
    for (size_t list = 0; list < lists; list++) {
        struct node *own = nodes + list * count;
        one_cycle(order, count);
        for (size_t i = 0; i < count; i++)
            own[i] = (struct node){.next = own + order[i], .value = i};
    }
    free(order);
}

static void linked_in_order(size_t bytes) {
    nodes = huge_area(bytes);
    count = bytes / sizeof *nodes;
    for (size_t i = 0; i < count; i++)
        nodes[i] = (struct node){.next = nodes + (i + 1) % count, .value = i};
}

static uint64_t one_list(void) {
    uint64_t sum = 0;
    struct node *n = nodes;
    for (size_t i = 0; i < count * passes; i++, n = n->next)
        sum += n->value;
    return sum;
}

static uint64_t two_lists(void) {
    uint64_t sum = 0;
    struct node *a = nodes, *b = nodes + count;
    for (size_t i = 0; i < count * passes; i++, a = a->next, b = b->next)
        sum += a->value + b->value;
    return sum;
}

static uint64_t four_lists(void) {
    uint64_t sum = 0;
    struct node *a = nodes, *b = a + count, *c = b + count, *d = c + count;
    for (size_t i = 0; i < count * passes; i++, a = a->next, b = b->next, c = c->next, d = d->next)
        sum += a->value + b->value + c->value + d->value;
    return sum;
}

// What a step over a node takes in the nearest cache.
static double step(body walk, size_t lists) {
    passes = MIB(64) / SMALL;
    linked_at_random(SMALL, lists);
    double ns = work(walk, passes * SMALL / LINE);
    passes = 1;
    return ns;
}

int main(void) {
    double ns = step(one_list, 1);
    linked_at_random(MIB(64), 1);
    timed("list of 64 MiB", one_list, "chase(64M, work=%.2fns)", ns);
    linked_in_order(MIB(64));
    // Each load waits for the one before, but the next lines are fetched ahead.
    timed("list of 64 MiB in order", one_list, "stride(64, 64M, mlp=1, work=%.2fns)", ns);
    passes = 16;
    linked_at_random(MIB(1), 1);
    timed("list of 1 MiB", one_list, "16 * chase(1M, work=%.2fns)", ns);
    passes = 1024;
    linked_at_random(24 << 10, 1);
    timed("list of 24 KiB", one_list, "1024 * chase(24K, work=%.2fns)", ns);
    ns = step(two_lists, 2);
    linked_at_random(MIB(64), 2);
    timed("two lists at once", two_lists, "rand(64M, mlp=2, work=%.2fns)", ns);
    ns = step(four_lists, 4);
    linked_at_random(MIB(64), 4);
    timed("four lists at once", four_lists, "rand(64M, mlp=4, work=%.2fns)", ns);
    return 0;
}
