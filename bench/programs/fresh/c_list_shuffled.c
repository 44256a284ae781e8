// expect: load=find data=site level=DRAM memory=yes
// Chains of records that come from a wrapper of malloc, linked in no order.
#include "fresh.h"

struct record {
    unsigned long key;
    char name[40];
    struct record *next;
};

static void *xmalloc(size_t size) {
    void *memory = malloc(size);
    if (!memory) {
        fputs("out of memory\n", stderr);
        exit(1);
    }
    return memory;
}

__attribute__((noinline)) static struct record *find(struct record *at, unsigned long key) {
    while (at->key != key) // HOT
        at = at->next;     // HOT
    return at;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    size_t count = dram_bytes() / 80;
    struct record **all = xmalloc(count * sizeof *all);
    for (size_t i = 0; i < count; i++) {
        all[i] = xmalloc(sizeof **all); // DATA
        all[i]->key = i;
    }
    for (size_t i = count - 1; i > 0; i--) {
        size_t other = draw() % i;
        struct record *swap = all[i];
        all[i] = all[other];
        all[other] = swap;
    }
    for (size_t i = 0; i < count; i++)
        all[i]->next = all[(i + 1) % count];
    struct record *at = all[0];
    begin_work(3);
    while (goes_on())
        at = find(at->next, all[draw() % count]->key);
    printf("%d\n", at != 0);
}
