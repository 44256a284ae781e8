/* A pool of spinlocks side by side, of which an address chooses one, as for shared pointers: any
 * thread takes any of them, seldom the same as another, but they lie in the same lines.
 *
 * Found: false_sharing of locks in "pool", taken in `update`. With -DONE there is one lock:
 * true_sharing of it. */
#include "pin.h"
#include <pthread.h>
#include <stdio.h>

#define THREADS 2
#define ROUNDS 30000000
#ifdef ONE
#define LOCKS 1
#else
#define LOCKS 41
#endif

static _Alignas(64) int pool[LOCKS];
static _Alignas(128) long data[THREADS][64];

static void *__attribute__((noinline)) update(void *given)
{
    long id = (long)given;
    unsigned long at = 88172645463325252ul * (id + 1);
    pin((int)id);
    for (long i = 0; i < ROUNDS; i++) {
        at ^= at << 13;
        at ^= at >> 7;
        at ^= at << 17;
        int *lock = &pool[(at >> 20) % LOCKS];
        while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
            while (__atomic_load_n(lock, __ATOMIC_RELAXED))
                __builtin_ia32_pause();
        data[id][i % 8]++;
        __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, update, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%ld\n", data[0][0] + data[1][7]);
    return 0;
}
