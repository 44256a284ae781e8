// expect: load=chase data=file:fresh-twice level=DRAM|L3 memory=yes
// A large mapped file, its records read in an order that they tell, again and again.
#include "fresh.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

struct record {
    uint64_t next, text[31];
};

__attribute__((noinline)) static uint64_t chase(const struct record *records, uint64_t at, long steps) {
    while (steps--)
        at = records[at].next; // HOT
    return at;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    char path[] = "/tmp/fresh-twice-XXXXXX";
    int file = mkstemp(path);
    uint64_t count = 1ull << 20;
    size_t bytes = count * sizeof(struct record);
    if (file < 0 || ftruncate(file, bytes))
        return 1;
    struct record *records = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    unlink(path);
    if (records == MAP_FAILED)
        return 1;
    for (uint64_t i = 0; i < count; i++)
        records[i].next = (i * 6364136223846793005ull + 1442695040888963407ull) & (count - 1);
    uint64_t at = 0;
    begin_work(2.5);
    while (goes_on())
        at = chase(records, at, 10000);
    printf("%d\n", at < count);
}
