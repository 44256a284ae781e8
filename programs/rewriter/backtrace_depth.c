// backtrace() and _Unwind_Backtrace at depth: as many frames through twins as there are calls.
//# flags: -fno-optimize-sibling-calls
//# twins: nest look
#include <execinfo.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

static int depth_seen;
static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *count) {
    *(int *)count += _Unwind_GetIP(context) != 0;
    return _URC_NO_REASON;
}
__attribute__((noinline)) void look(void) {
    void *frames[300];
    int found = backtrace(frames, 300);
    int walked = 0;
    _Unwind_Backtrace(step, &walked);
    depth_seen = found;
    printf("frames %d %d\n", found > 3, found == walked || found + 1 == walked || walked + 1 == found);
}
__attribute__((noinline)) int zero(int x) { return x; }
__attribute__((noinline)) int nest(int n, int (*f)(int)) {
    char pad[80];
    memset(pad, n, sizeof pad);
    __asm__ volatile("" : : "r"(pad) : "memory");
    if (n == 0) {
        look();
        return depth_seen;
    }
    int result = nest(n - 1, f);
    return result + (pad[n % 80] != (char)n) + f(0);
}
int main(void) {
    int shallow = nest(1, zero), deep = nest(141, zero);
    printf("%d\n", deep - shallow);
    printf("%d\n", __builtin_return_address(0) != 0);
    return deep - shallow != 140;
}
