// expect: load=column_sums data=global:grid level=DRAM memory=yes
// A static matrix of cells of a cache line each, summed up by columns.
#include "fresh.h"

enum { ROWS = 8192, COLUMNS = 1024 };

static struct cell {
    double weight;
    double rest[7];
} grid[ROWS][COLUMNS + 1];
static double sums[COLUMNS];

__attribute__((noinline)) static void column_sums(void) {
    for (int c = 0; c < COLUMNS; c++) {
        double sum = 0;
        for (int r = 0; r < ROWS; r++)
            sum += grid[r][c].weight; // HOT
        sums[c] = sum;
    }
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++)
            grid[r][c].weight = r ^ c;
    begin_work(2);
    while (goes_on())
        column_sums();
    printf("%g\n", sums[7]);
}
