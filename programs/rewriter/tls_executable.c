// Thread-local variables of the program itself: by offset from the thread pointer, initialised,
// zeroed and aligned.
//# flags: -pthread
//# twins: local_exec initial_exec
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static _Thread_local int counted = 5;
static _Thread_local char zeroed[100];
static _Thread_local _Alignas(64) long aligned[3] = {1, 2, 3};
extern _Thread_local int everywhere __attribute__((tls_model("initial-exec")));
_Thread_local int everywhere = 9;

__attribute__((noinline)) long local_exec(int n) {
    for (int i = 0; i < n; i++) {
        counted += i;
        zeroed[i % 100] += (char)counted;
        aligned[i % 3] += zeroed[(i * 7) % 100];
    }
    return counted + aligned[0] * 3 + aligned[1] * 5 + aligned[2] * 7 + ((uintptr_t)aligned % 64 != 0);
}
__attribute__((noinline)) int initial_exec(int n) { return everywhere = everywhere * 3 + n; }
static void *start(void *argument) {
    long n = (long)argument;
    return (void *)(local_exec((int)n * 10) * 1000 + initial_exec((int)n));
}
int main(void) {
    for (long n = 1; n < 4; n++) {
        pthread_t thread;
        void *result;
        pthread_create(&thread, 0, start, (void *)n);
        pthread_join(thread, &result);
        printf("%ld\n", (long)result);
    }
    printf("%ld %d\n", local_exec(30), initial_exec(1));
}
