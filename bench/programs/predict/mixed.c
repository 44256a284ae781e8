// Accesses to several areas in turn, by one thread: they overlap, and share the caches.
#include "case.h"

struct node {
    struct node *next;
    uint64_t value;
    char rest[LINE - 16];
};

static struct node *list, *other;
static struct node *lines, *end;
static size_t steps;

static struct node *linked(size_t bytes) {
    const size_t count = bytes / sizeof(struct node);
    struct node *nodes = huge_area(bytes);
    uint32_t *order = malloc(count * sizeof *order);
    one_cycle(order, count);
    for (size_t i = 0; i < count; i++)
        nodes[i] = (struct node){.next = nodes + order[i], .value = i};
    free(order);
    return nodes;
}

static void passed(size_t bytes) {
    lines = linked(bytes);
    end = lines + bytes / sizeof *lines;
}

// A step along the list, and the next two lines of a pass in order.
static uint64_t list_and_pass(void) {
    uint64_t sum = 0;
    const struct node *n = list, *l = lines;
    for (size_t i = 0; i < steps; i++, n = n->next) {
        sum += n->value + l[0].value + l[1].value;
        l = l + 2 == end ? lines : l + 2;
    }
    return sum;
}

static uint64_t two_lists(void) {
    uint64_t sum = 0;
    const struct node *a = list, *b = other;
    for (size_t i = 0; i < steps; i++, a = a->next, b = b->next)
        sum += a->value + b->value;
    return sum;
}

int main(void) {
    list = linked(SMALL / 2), other = linked(SMALL / 2);
    passed(SMALL / 2);
    steps = MIB(1);
    double pass = work(list_and_pass, steps), two = work(two_lists, steps);
    list = linked(MIB(32));
    passed(MIB(64));
    steps = MIB(32) / LINE;
    timed("list of 32 MiB among a pass over 64 MiB", list_and_pass, "chase(32M, work=%.2fns) & seq(64M)", pass);
    list = linked(512 << 10);
    steps = MIB(1);
    timed("list of 512 KiB among a pass over 64 MiB", list_and_pass,
          "chase(512K, n=1048576, work=%.2fns) & seq(64M, n=2097152)", pass);
    other = linked(MIB(64));
    timed("lists of 512 KiB and 64 MiB", two_lists,
          "chase(512K, n=1048576, work=%.2fns) & chase(64M, n=1048576)", two);
    return 0;
}
