// expect: load=multiply data=site level=DRAM memory=yes
// A sparse matrix times a vector that no cache holds: the vector is gathered.
#include "fresh.h"

struct sparse {
    int rows;
    int *starts, *columns;
    float *values;
};

__attribute__((noinline)) static void multiply(const struct sparse *m, const float *x, float *y) {
    for (int row = 0; row < m->rows; row++) {
        float sum = 0;
        for (int at = m->starts[row]; at < m->starts[row + 1]; at++)
            sum += m->values[at] * x[m->columns[at]]; // HOT
        y[row] = sum;
    }
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    const int rows = 200000, each = 10;
    int width = dram_bytes() / sizeof(float);
    struct sparse m = {.rows = rows};
    m.starts = malloc((rows + 1) * sizeof(int));
    m.columns = malloc((size_t)rows * each * sizeof(int));
    m.values = malloc((size_t)rows * each * sizeof(float));
    float *x = malloc((size_t)width * sizeof(float)); // DATA
    float *y = malloc(rows * sizeof(float));
    for (int i = 0; i < width; i++)
        x[i] = 1;
    for (int row = 0; row <= rows; row++)
        m.starts[row] = row * each;
    for (int i = 0; i < rows * each; i++) {
        m.columns[i] = draw() % width;
        m.values[i] = 0.5f;
    }
    begin_work(2);
    while (goes_on())
        multiply(&m, x, y);
    printf("%g\n", y[rows - 1]);
}
