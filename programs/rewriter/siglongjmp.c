// siglongjmp out of a handler for a fault, again and again: the faulting twin never goes on.
//# twins: touch handler
//# refused: attempt calls_twice_returning
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

static sigjmp_buf home;
static volatile int touched;
__attribute__((noinline)) void handler(int number) { siglongjmp(home, number); }
__attribute__((noinline)) int touch(volatile int *where, int value) {
    touched++;
    *where = value;
    return *where * 2;
}
__attribute__((noinline)) int attempt(volatile int *where, int value) {
    int got = sigsetjmp(home, 1);
    return got ? -got : touch(where, value);
}
int main(void) {
    int place = 0;
    signal(SIGSEGV, handler);
    for (int i = 0; i < 5; i++) {
        int result = attempt(i % 2 ? (int *)8 : &place, i);
        printf("%d %d\n", result, place);
    }
    printf("%d\n", touched);
}
