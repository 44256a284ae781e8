// A handler on an alternate stack, entered by a stack overflow, and by a raised signal with its
// context.
//# twins: overflow on_overflow on_raise
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static sigjmp_buf home;
static char *alternate;
static const size_t size = 64 << 10;
static volatile int depth;
__attribute__((noinline)) int overflow(int n) {
    volatile char block[4096];
    memset((char *)block, n, sizeof block);
    depth++;
    return overflow(n + 1) + block[n & 4095];
}
__attribute__((noinline)) void on_overflow(int number) {
    char here;
    int inside = &here >= alternate && &here < alternate + size;
    siglongjmp(home, inside ? number : -number);
}
__attribute__((noinline)) void on_raise(int number, siginfo_t *info, void *context) {
    char here;
    int inside = &here >= alternate && &here < alternate + size;
    printf("signal %d %d %d %d\n", number, info->si_signo, inside, context != 0);
}
__attribute__((noinline)) static int try(void) {
    int got = sigsetjmp(home, 1);
    return got ? got : overflow(0);
}
int main(void) {
    struct rlimit small = {256 << 10, 256 << 10};
    setrlimit(RLIMIT_STACK, &small);
    alternate = malloc(size);
    stack_t stack = {.ss_sp = alternate, .ss_size = size};
    sigaltstack(&stack, 0);
    struct sigaction action = {.sa_handler = on_overflow, .sa_flags = SA_ONSTACK};
    sigaction(SIGSEGV, &action, 0);
    struct sigaction raised = {.sa_sigaction = on_raise, .sa_flags = SA_ONSTACK | SA_SIGINFO};
    sigaction(SIGUSR2, &raised, 0);
    raise(SIGUSR2);
    for (int i = 0; i < 3; i++) {
        depth = 0;
        int got = try();
        printf("%d %d\n", got, depth > 20);
    }
    raise(SIGUSR2);
}
