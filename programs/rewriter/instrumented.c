// Functions that report each entry and exit, with their own address and their caller's.
//# flags: -finstrument-functions
//# twins: inner
#include <stdio.h>

#define QUIET __attribute__((no_instrument_function))
static int depth, deepest, entries, own, known;
int work(int n);
int inner(int n);
QUIET void __cyg_profile_func_enter(void *self, void *caller) {
    entries++;
    own += self == (void *)work || self == (void *)inner;
    known += caller != 0;
    if (++depth > deepest) deepest = depth;
}
QUIET void __cyg_profile_func_exit(void *self, void *caller) { depth -= self != caller; }
__attribute__((noinline)) int inner(int n) { return n % 7; }
__attribute__((noinline)) int work(int n) { return n == 0 ? 1 : work(n - 1) * 2 % 1009 + inner(n); }
QUIET int main(void) {
    int result = work(30);
    printf("%d\n%d %d %d %d %d\n", result, depth, deepest, entries, own, known);
    return depth;
}
