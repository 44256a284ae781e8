/* A pool of spinlocks, four bytes each, of which an address chooses one: each thread takes locks
 * that no other takes, but they lie in the same lines.
 *
 * Found: false_sharing of "pool", written in `update`. */
#include "pin.h"
#include <pthread.h>
#include <stdio.h>

#define THREADS 2
#define LOCKS 8
#define ROUNDS 40000000

static _Alignas(64) int pool[LOCKS];
static _Alignas(128) long data[THREADS][64];

static void *__attribute__((noinline)) update(void *given)
{
    long id = (long)given;
    pin((int)id);
    for (long i = 0; i < ROUNDS; i++) {
        int *lock = &pool[(i % (LOCKS / THREADS)) * THREADS + id];
        while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
            ;
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
