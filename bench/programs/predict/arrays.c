// Arrays and matrices: places that are known beforehand.
#include "case.h"

enum { ROWS = 8192, COLUMNS = 1024 };

static double *a, *b;
static size_t count, passes = 1;

static uint64_t sum(void) {
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
    for (size_t pass = 0; pass < passes; pass++)
        for (size_t i = 0; i < count; i += 8) {
            s0 += a[i], s1 += a[i + 1], s2 += a[i + 2], s3 += a[i + 3];
            s4 += a[i + 4], s5 += a[i + 5], s6 += a[i + 6], s7 += a[i + 7];
        }
    return s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7;
}

static uint64_t copy(void) {
    memcpy(b, a, count * sizeof *a);
    return b[0];
}

static uint64_t fill(void) {
    for (size_t i = 0; i < count; i++)
        b[i] = 1.5;
    return b[0];
}

static uint64_t triad(void) {
    double *c = b + count / 2;
    for (size_t i = 0; i < count / 2; i++)
        c[i] = a[i] + 3 * b[i];
    return c[0];
}

// Each column on its own.
static uint64_t by_columns(void) {
    double most = 0;
    for (size_t column = 0; column < COLUMNS; column++) {
        double s = 0;
        for (size_t row = 0; row < ROWS; row++)
            s += a[row * COLUMNS + column];
        most = s > most ? s : most;
    }
    return most;
}

// Runs of a page each, sign-changed, at random places.
static uint64_t windows(void) {
    const size_t each = 4096 / sizeof *a;
    for (size_t i = 0; i < count / each; i++) {
        double *w = a + random_number() % (count / each) * each;
        for (size_t k = 0; k < each; k++)
            w[k] = -w[k];
    }
    return a[0];
}

static void make(size_t bytes) {
    count = bytes / sizeof *a;
    a = area(bytes);
    b = area(bytes);
    for (size_t i = 0; i < count; i++)
        a[i] = 1, b[i] = 2;
}

int main(void) {
    make(MIB(64));
    timed("sum of 64 MiB", sum, "seq(64M)");
    timed("copy of 64 MiB", copy, "seq(128M, op=copy)");
    timed("fill of 64 MiB", fill, "seq(64M, op=write)");
    timed("triad over 96 MiB", triad, "seq(96M, op=triad)");
    timed("matrix of 64 MiB by columns", by_columns, "stride(8K, 64M, n=8388608)");
    timed("windows of 4 KiB in 64 MiB", windows, "window(4K, 64M)");
    passes = 64;
    make(MIB(1));
    timed("sum of 1 MiB", sum, "64 * seq(1M)");
    return 0;
}
