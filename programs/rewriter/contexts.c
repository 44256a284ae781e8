// makecontext and swapcontext: two routines that take turns on stacks of their own.
//# twins: ping pong
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

static ucontext_t home, first, second;
static unsigned long shared;
__attribute__((noinline)) static void to_second(void) { swapcontext(&first, &second); }
__attribute__((noinline)) static void to_first(void) { swapcontext(&second, &first); }
__attribute__((noinline)) void ping(int n) {
    unsigned long mine = 3;
    for (int i = 0; i < n; i++) {
        mine = mine * 7 + shared % 11;
        shared += mine % 13;
        to_second();
    }
    printf("ping %lu\n", mine % 1000003);
}
__attribute__((noinline)) void pong(int n) {
    double mine = 0.5;
    for (int i = 0; i < n; i++) {
        mine += shared * 0.25;
        shared ^= i;
        to_first();
    }
    printf("pong %.2f\n", mine);
}
int main(void) {
    size_t size = 128 << 10;
    getcontext(&first);
    getcontext(&second);
    first.uc_stack.ss_sp = malloc(size), first.uc_stack.ss_size = size, first.uc_link = &second;
    second.uc_stack.ss_sp = malloc(size), second.uc_stack.ss_size = size, second.uc_link = &home;
    makecontext(&first, (void (*)(void))ping, 1, 200);
    makecontext(&second, (void (*)(void))pong, 1, 200);
    swapcontext(&home, &first);
    printf("%lu\n", shared);
}
