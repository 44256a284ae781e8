// expect: load=weigh data=site level=DRAM memory=yes
// Columns of a matrix whose rows take 2 KiB: each begins a cache line behind the one before.
#include "fresh.h"

struct cell {
    float weight, rest[15];
};
enum { COLUMNS = 32 };

__attribute__((noinline)) static float weigh(const struct cell (*rows)[COLUMNS], size_t count, int column) {
    float sum = 0;
    for (size_t row = 0; row < count; row++)
        sum += rows[row][column].weight; // HOT
    return sum;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    size_t count = dram_bytes() / sizeof(struct cell[COLUMNS]);
    struct cell(*rows)[COLUMNS] = malloc(count * sizeof *rows); // DATA
    for (size_t row = 0; row < count; row++)
        for (int column = 0; column < COLUMNS; column++)
            rows[row][column].weight = row ^ column;
    float sum = 0;
    begin_work(2.5);
    for (int column = 0; goes_on(); column = (column + 1) % COLUMNS)
        sum += weigh(rows, count, column);
    printf("%d\n", sum > 0);
}
