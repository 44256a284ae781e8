// expect: memory=no
// Matrices multiplied in blocks that L1 holds.
#include "fresh.h"

enum { N = 384, BLOCK = 32 };
static float a[N][N], b[N][N], c[N][N];

__attribute__((noinline)) static void multiply(void) {
    for (int ii = 0; ii < N; ii += BLOCK)
        for (int kk = 0; kk < N; kk += BLOCK)
            for (int jj = 0; jj < N; jj += BLOCK)
                for (int i = ii; i < ii + BLOCK; i++)
                    for (int k = kk; k < kk + BLOCK; k++) {
                        float by = a[i][k];
                        for (int j = jj; j < jj + BLOCK; j++)
                            c[i][j] += by * b[k][j];
                    }
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            a[i][j] = i - j, b[i][j] = 1.0f / (1 + i + j);
    begin_work(2);
    while (goes_on())
        multiply();
    printf("%d\n", c[3][5] != 0);
}
