// expect: load=look data=file:fresh-data level=L3 memory=yes
// Random records of a mapped file.
#include "fresh.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

struct record {
    uint32_t id, next;
    char text[56];
};

__attribute__((noinline)) static uint32_t look(const struct record *records, uint32_t at, int steps) {
    while (steps--)
        at = records[at].next; // HOT
    return at;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    char path[] = "/tmp/fresh-data-XXXXXX";
    int file = mkstemp(path);
    uint32_t count = middle_bytes() / sizeof(struct record);
    uint32_t *order = malloc(count * sizeof *order);
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    for (uint32_t i = count - 1; i > 0; i--) {
        uint32_t other = draw() % i, swap = order[i];
        order[i] = order[other], order[other] = swap;
    }
    struct record *all = calloc(count, sizeof *all);
    for (uint32_t i = 0; i < count; i++)
        all[order[i]].next = order[(i + 1) % count];
    size_t bytes = count * sizeof *all;
    if (write(file, all, bytes) != (ssize_t)bytes)
        return 1;
    free(all);
    const struct record *records = mmap(0, bytes, PROT_READ, MAP_SHARED, file, 0);
    uint32_t at = 0;
    begin_work(2.5);
    while (goes_on())
        at = look(records, at, 10000);
    unlink(path);
    printf("%d\n", at < count);
}
