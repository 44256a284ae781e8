/* Each thread counts in a line of its own, two lines from the next one.
 *
 * Found: nothing. */
#include "pin.h"
#include <pthread.h>
#include <stdio.h>

#define THREADS 2
#define ROUNDS 50000000

static struct { _Alignas(128) long count; } own[THREADS];

static void *__attribute__((noinline)) count(void *given)
{
    long id = (long)given;
    pin((int)id);
    for (long i = 0; i < ROUNDS; i++)
        __atomic_fetch_add(&own[id].count, 1, __ATOMIC_RELAXED);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, count, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%ld\n", own[0].count + own[1].count);
    return 0;
}
