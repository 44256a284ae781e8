// Walking the stack: backtrace() at depth, _Unwind_Backtrace, from a signal handler, and __builtin_return_address.
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

static int depth_seen;
static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *count) {
    (void)context;
    ++*(int *)count;
    return _URC_NO_REASON;
}
__attribute__((noinline)) static void look(void) {
    void *frames[200];
    int found = backtrace(frames, 200);
    int walked = 0;
    _Unwind_Backtrace(step, &walked);
    depth_seen = found;
    printf("frames %d %d\n", found > 0, found == walked || found + 1 == walked || walked + 1 == found);
}
__attribute__((noinline)) int nest(int n, int (*f)(int)) {
    char pad[64 + 16];
    memset(pad, n, sizeof pad);
    if (n == 0) { look(); return depth_seen; }
    int result = nest(n - 1, f);
    return result + (pad[n] != n) + f(0);
}
__attribute__((noinline)) int zero(int x) { return x; }
static void handler(int number) { look(); (void)number; }
int main(void) {
    int shallow = nest(1, zero), deep = nest(41, zero);
    printf("%d\n", deep - shallow);
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    printf("%d\n", __builtin_return_address(0) != 0);
}
