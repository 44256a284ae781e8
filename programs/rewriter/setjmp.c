// setjmp and longjmp over many frames: what is live in registers and memory afterwards.
//# twins: down leap
//# refused: around calls_twice_returning
#include <setjmp.h>
#include <stdio.h>

static jmp_buf home;
__attribute__((noinline)) int leap(int code) { longjmp(home, code); }
__attribute__((noinline)) int down(int n) {
    if (n == 0) return leap(5);
    return down(n - 1) + n;
}
__attribute__((noinline)) int around(int a, int b) {
    volatile int tries = 0;
    int code = setjmp(home);
    if (code == 0) return down(10);
    tries += code;
    if (tries < 20) leap(tries + 1);
    return tries * 100 + a - b;
}
int main(void) {
    int a = around(7, 3), b = around(70, 3);
    printf("%d %d\n", a, b);
    return a == b;
}
