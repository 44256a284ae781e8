/* Both threads count with one counter.
 *
 * Found: true_sharing of "counter"; no false_sharing. */
#include "pin.h"
#include <pthread.h>
#include <stdio.h>

#define THREADS 2
#define ROUNDS 25000000

static _Alignas(128) long counter;

static void *__attribute__((noinline)) count(void *given)
{
    pin((int)(long)given);
    for (long i = 0; i < ROUNDS; i++)
        __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, count, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%ld\n", counter);
    return 0;
}
