/* Both threads read a small table all the time, at different places of its lines and at the same
 * ones; nobody writes to it.
 *
 * Found: nothing. */
#include "pin.h"
#include <pthread.h>
#include <stdio.h>

#define THREADS 2
#define ROUNDS 200000000

static _Alignas(64) unsigned next[16] = { 5, 9, 3, 12, 7, 1, 15, 2, 0, 14, 8, 4, 13, 6, 11, 10 };

static void *__attribute__((noinline)) look_up(void *given)
{
    unsigned at = (unsigned)(long)given;
    pin((int)at);
    for (long i = 0; i < ROUNDS; i++) {
        at = next[at];
        __asm__ volatile("" : "+r"(at));
    }
    return (void *)(long)at;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, look_up, (void *)i);
    long sum = 0;
    for (int i = 0; i < THREADS; i++) {
        void *at;
        pthread_join(threads[i], &at);
        sum += (long)at;
    }
    printf("%ld\n", sum);
    return 0;
}
