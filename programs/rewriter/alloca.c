// Frames whose size is known only when they are made: alloca in a loop, arrays of variable length,
// and unwinding by rbp.
//# twins: stack arrays
#include <alloca.h>
#include <stdio.h>
#include <string.h>

__attribute__((noinline)) unsigned stack(unsigned n) {
    unsigned char *parts[10];
    unsigned sum = 0;
    for (unsigned k = 0; k < 10; k++) {
        parts[k] = alloca(n + k + 1);
        memset(parts[k], (int)(n + k), n + k + 1);
    }
    for (unsigned k = 0; k < 10; k++)
        for (unsigned i = 0; i <= n + k; i++) sum = sum * 31 + parts[k][i];
    return sum;
}
__attribute__((noinline)) long arrays(int n, int m) {
    long grid[n][m], total = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < m; k++) grid[i][k] = i * m + k;
    for (int k = 0; k < m; k++)
        for (int i = 0; i < n; i++) total = total * 7 % 1000003 + grid[i][k];
    return n > 2 ? total + arrays(n / 2, m + 1) : total;
}
int main(void) {
    for (unsigned n = 1; n < 400; n += 37) printf("%u ", stack(n));
    printf("\n%ld %ld\n", arrays(9, 5), arrays(30, 17));
}
