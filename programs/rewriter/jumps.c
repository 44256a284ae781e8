// setjmp and longjmp over several frames, sigsetjmp out of a handler, and what is kept in registers across them.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

static jmp_buf home;
static sigjmp_buf from_signal;
__attribute__((noinline)) static int down(int n) {
    if (n == 0) longjmp(home, 5);
    return down(n - 1) + n;
}
static void handler(int number) { siglongjmp(from_signal, number); }
__attribute__((noinline)) static int around(int a, int b) {
    volatile int tries = 0;
    int code = setjmp(home);
    if (code == 0) return down(10);
    tries += code;
    if (tries < 20) longjmp(home, tries + 1);
    return tries * 100 + a - b;
}
int main(void) {
    printf("%d\n", around(7, 3));
    signal(SIGSEGV, handler);
    for (int i = 0; i < 3; i++) {
        int got = sigsetjmp(from_signal, 1);
        if (got == 0) {
            *(volatile int *)8 = i;
            puts("not reached");
        }
        printf("signal %d\n", got);
    }
}
