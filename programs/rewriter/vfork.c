// vfork: the child borrows the parent's stack, so its caller has no twin, but what it calls does.
//# twins: prepare after
//# refused: start calls_twice_returning|calls_address_reader
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int shared;
__attribute__((noinline)) int prepare(int n) { return n * 3 + 1; }
__attribute__((noinline)) int after(int status, int n) { return WIFEXITED(status) ? WEXITSTATUS(status) * 100 + n : -1; }
__attribute__((noinline)) int start(int n) {
    volatile int kept = n * 7;
    pid_t child = vfork();
    if (child == 0) {
        shared += prepare(n);
        _exit(prepare(n));
    }
    int status = 0;
    waitpid(child, &status, 0);
    return after(status, kept);
}
int main(void) {
    for (int i = 0; i < 5; i++) {
        int result = start(i);
        printf("%d %d\n", result, shared);
    }
}
