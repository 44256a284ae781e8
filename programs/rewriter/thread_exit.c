// pthread_exit from deep inside, asynchronous cancellation out of a loop, and keys whose
// destructors run then.
//# flags: -pthread -fexceptions
//# twins: dig spin forget
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_key_t key;
static volatile int forgotten, spinning;
static volatile unsigned long counter;
__attribute__((noinline)) void forget(void *value) { forgotten += *(int *)value; }
__attribute__((noinline)) void dig(int n) {
    int here __attribute__((cleanup(forget))) = n;
    if (n == 0) pthread_exit((void *)77);
    dig(n - 1);
}
__attribute__((noinline)) void *spin(void *unused) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
    spinning = 1;
    for (;;) counter++;
    return unused;
}
static void *start(void *argument) {
    pthread_setspecific(key, argument);
    dig(9);
    return 0;
}
int main(void) {
    pthread_t thread;
    void *result;
    int mine = 1000;
    pthread_key_create(&key, forget);
    pthread_create(&thread, 0, start, &mine);
    pthread_join(thread, &result);
    printf("%ld %d\n", (long)result, forgotten);
    pthread_create(&thread, 0, spin, 0);
    while (!spinning || counter < 1000) usleep(100);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("%d\n", result == PTHREAD_CANCELED);
}
