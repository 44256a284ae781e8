// A sparse matrix by a vector: rows of 16 entries at random columns.
#include "common.h"

__attribute__((noinline)) static void multiply(double *out, const uint32_t *columns, const double *values,
                                               const double *in, size_t rows) {
    for (size_t row = 0; row < rows; row++) {
        double sum = 0;
        for (size_t k = row * 16; k < row * 16 + 16; k++) {
#ifdef BY_HAND
            FETCH(&in[columns[k + AHEAD]]);
#endif
            sum += values[k] * in[columns[k]];
        }
        out[row] = sum;
    }
}

int main(int argc, char **argv) {
    size_t width = entries(argc, argv, 26), rows = 1 << 18;
    uint32_t *columns = memory((rows * 16 + 64) * 4);
    double *values = memory((rows * 16 + 64) * 8), *in = memory(width * 8), *out = memory(rows * 8);
    for (size_t i = 0; i < rows * 16 + 64; i++) {
        columns[i] = random_number() & (width - 1);
        values[i] = (double)(i % 7);
    }
    for (size_t i = 0; i < width; i++) in[i] = (double)(i % 13);
    double sum = 0;
    for (int round = 0; round < 24; round++) {
        multiply(out, columns, values, in, rows);
        sum += out[round * 977];
    }
    printf("%.0f\n", sum);
}
