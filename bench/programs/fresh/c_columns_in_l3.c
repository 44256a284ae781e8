// expect: load=largest data=site level=L3 memory=yes
// Columns of a matrix that L2 does not hold and L3 does; a row is no multiple of a cache line.
#include "fresh.h"

enum { COLUMNS = 251 };

__attribute__((noinline)) static double largest(const double (*rows)[COLUMNS], size_t count, int column) {
    double most = 0;
    for (size_t row = 0; row < count; row++)
        most = rows[row][column] > most ? rows[row][column] : most; // HOT
    return most;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    size_t count = middle_bytes() / sizeof(double[COLUMNS]);
    double(*rows)[COLUMNS] = malloc(count * sizeof *rows); // DATA
    for (size_t row = 0; row < count; row++)
        for (int column = 0; column < COLUMNS; column++)
            rows[row][column] = draw() >> 12;
    double sum = 0;
    begin_work(2.5);
    // Eight columns on, another line.
    for (int column = 0; goes_on(); column = (column + 8) % COLUMNS)
        sum += largest(rows, count, column);
    printf("%d\n", sum > 0);
}
