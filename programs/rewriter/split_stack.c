// Stacks in pieces: a function that needs more calls for it, and the answer comes not behind the
// call but behind the `ret` there.
//# compilers: gcc
//# flags: -fsplit-stack
//# twins: main
//# refused: deep calls_address_reader
//# refused: large calls_address_reader
#include <stdio.h>
#include <string.h>

__attribute__((noinline)) long deep(int n) {
    char frame[700];
    memset(frame, n, sizeof frame);
    long sum = n ? deep(n - 1) : 0;
    for (int i = 0; i < 700; i += 97)
        sum += frame[i];
    return sum;
}
__attribute__((noinline)) long varying(int n) {
    char *frame = __builtin_alloca(n);
    memset(frame, n, n);
    long sum = 0;
    for (int i = 0; i < n; i++)
        sum += frame[i];
    return sum;
}
__attribute__((noinline)) long large(int n) {
    volatile char frame[40000];
    frame[n] = 3;
    frame[39999] = n;
    return frame[n] + frame[39999];
}
__attribute__((no_split_stack)) int main(void) {
    printf("%ld %ld %ld %ld\n", deep(200), varying(77), varying(20000), large(9));
}
