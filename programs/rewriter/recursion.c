// Recursion: deep, mutual, doubly, and through a pointer, with values kept over the calls.
//# twins: ackermann place hanoi
#include <stdio.h>

__attribute__((noinline)) unsigned ackermann(unsigned m, unsigned n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}
__attribute__((noinline)) int place(int row, int n, unsigned columns, unsigned left, unsigned right) {
    if (row == n) return 1;
    int found = 0;
    for (int i = 0; i < n; i++) {
        unsigned bit = 1u << i;
        if (columns & bit || left & bit || right & bit) continue;
        found += place(row + 1, n, columns | bit, (left | bit) << 1, (right | bit) >> 1);
    }
    return found;
}
__attribute__((noinline)) long hanoi(int n, int from, int to, long (*again)(int, int, int, void *), void *next) {
    long (*self)(int, int, int, long (*)(int, int, int, void *), void *) = next;
    if (n == 0) return from * 3 + to;
    long before = self(n - 1, from, 6 - from - to, again, next);
    return before * 31 % 1000003 + self(n - 1, 6 - from - to, to, again, next) + from - to;
}
__attribute__((noinline)) long depth(long n) { return n == 0 ? 0 : 1 + depth(n - 1) * 1 + (n & 1); }
int main(void) {
    printf("%u\n", ackermann(2, 300));
    printf("%d\n", place(0, 8, 0, 0, 0));
    printf("%ld\n", hanoi(12, 1, 3, 0, hanoi));
    printf("%ld\n", depth(20000));
}
