// Thread-local variables of a rewritten library: general dynamic and local dynamic, by calls of
// __tls_get_addr.
//# library: lib/tls.c
//# flags: -pthread
//# twins: general_dynamic local_dynamic start
#include <pthread.h>
#include <stdio.h>

extern _Thread_local int shown;
long general_dynamic(int n);
long local_dynamic(int n, double keep);
__attribute__((noinline)) void *start(void *argument) {
    long n = (long)argument;
    shown += (int)n;
    long sum = general_dynamic((int)n * 5) + local_dynamic((int)n * 3, n * 0.5);
    return (void *)(sum * 100 + shown);
}
int main(void) {
    for (long n = 1; n < 4; n++) {
        pthread_t thread;
        void *result;
        pthread_create(&thread, 0, start, (void *)n);
        pthread_join(thread, &result);
        printf("%ld %ld\n", (long)result, (long)start((void *)n));
    }
}
