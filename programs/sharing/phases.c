/* Threads write to different bytes of one line, but never at the same time: a barrier ends each
 * phase, and in each phase one thread works.
 *
 * Found: nothing. */
#include "pin.h"
#include <pthread.h>
#include <stdio.h>

#define THREADS 2
#define PHASES 20
#define ROUNDS 8000000

static _Alignas(128) long sums[8];
static pthread_barrier_t barrier;

static void *__attribute__((noinline)) work(void *given)
{
    long id = (long)given;
    pin((int)id);
    for (int phase = 0; phase < PHASES; phase++) {
        if (phase % THREADS == id)
            for (long i = 0; i < ROUNDS; i++)
                __atomic_fetch_add(&sums[id], 1, __ATOMIC_RELAXED);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%ld\n", sums[0] + sums[1]);
    return 0;
}
