// Arrays and matrices: places that are known beforehand.
#include "case.h"

static double *a, *b;
static size_t count, passes, rows, columns;

static uint64_t sum(void) {
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
    for (size_t pass = 0; pass < passes; pass++)
        for (size_t i = 0; i < count; i += 8) {
            s0 += a[i], s1 += a[i + 1], s2 += a[i + 2], s3 += a[i + 3];
            s4 += a[i + 4], s5 += a[i + 5], s6 += a[i + 6], s7 += a[i + 7];
        }
    return s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7;
}

// A loop, not the library's copy, which has its own ways to write.
__attribute__((optimize("no-tree-loop-distribute-patterns"))) static uint64_t copy(void) {
    for (size_t pass = 0; pass < passes; pass++)
        for (size_t i = 0; i < count; i++)
            b[i] = a[i];
    return b[0];
}

static uint64_t fill(void) {
    for (size_t pass = 0; pass < passes; pass++)
        for (size_t i = 0; i < count; i++)
            b[i] = pass;
    return b[0];
}

static uint64_t triad(void) {
    double *c = b + count / 2;
    for (size_t pass = 0; pass < passes; pass++)
        for (size_t i = 0; i < count / 2; i++)
            c[i] = a[i] + 3 * b[i];
    return c[0];
}

// Each column on its own.
static uint64_t by_columns(void) {
    double most = 0;
    for (size_t pass = 0; pass < passes; pass++)
        for (size_t column = 0; column < columns; column++) {
            double s = 0;
            for (size_t row = 0; row < rows; row++)
                s += a[row * columns + column];
            most = s > most ? s : most;
        }
    return most;
}

// Runs of a page each, sign-changed, at random places.
static uint64_t windows(void) {
    const size_t each = 4096 / sizeof *a;
    for (size_t i = 0; i < passes * count / each; i++) {
        double *w = a + random_number() % (count / each) * each;
        for (size_t k = 0; k < each; k++)
            w[k] = -w[k];
    }
    return a[0];
}

static void make(size_t bytes, size_t times) {
    passes = times;
    count = bytes / sizeof *a;
    a = huge_area(bytes);
    b = huge_area(bytes);
    for (size_t i = 0; i < count; i++)
        a[i] = 1, b[i] = 2;
}

// What a line takes in the nearest cache; all arrays together are `arrays` times as large as one.
static double line(body pass, double arrays) {
    make(SMALL / 2, 2 * MIB(64) / SMALL);
    return work(pass, arrays * MIB(64) / LINE);
}

int main(void) {
    double summed = line(sum, 1), copied = line(copy, 2), filled = line(fill, 1), added = line(triad, 1.5);
    make(SMALL, MIB(64) / SMALL);
    double signs = work(windows, MIB(64) / 4096.);
    // Columns as long as those of the large matrix: 2 instead of 1024.
    rows = 1024, columns = 2, passes = MIB(64) / SMALL;
    double element = work(by_columns, MIB(64) / sizeof *a);
    passes = 1;
    double steps = instructions(by_columns, rows * columns);

    make(MIB(64), 1);
    timed("sum of 64 MiB", sum, "seq(64M, work=%.2fns)", summed);
    timed("copy of 64 MiB", copy, "seq(128M, op=copy, work=%.2fns)", copied);
    timed("fill of 64 MiB", fill, "seq(64M, op=write, work=%.2fns)", filled);
    timed("triad over 96 MiB", triad, "seq(96M, op=triad, work=%.2fns)", added);
    rows = 8192, columns = 1024;
    timed("matrix of 64 MiB by columns", by_columns,
          "stride(8K, 64M, n=8388608, work=%.2fns, instructions=%.1f)", element, steps);
    timed("windows of 4 KiB in 64 MiB", windows, "window(4K, 64M, work=%.1fns)", signs);
    make(MIB(1), 64);
    timed("sum of 1 MiB", sum, "64 * seq(1M, work=%.2fns)", summed);
    return 0;
}
