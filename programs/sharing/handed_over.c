/* One thread fills a small array; when it has ended, another one goes on with it.
 *
 * Found: nothing. */
#include "pin.h"
#include <pthread.h>
#include <stdio.h>

#define ROUNDS 40000000

static _Alignas(128) long sums[8];

static void *__attribute__((noinline)) work(void *given)
{
    pin((int)(long)given);
    for (long i = 0; i < ROUNDS; i++)
        __atomic_fetch_add(&sums[i & 1 ? (long)given : 2], 1, __ATOMIC_RELAXED);
    return NULL;
}

int main(void)
{
    for (long i = 0; i < 2; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, (void *)i);
        pthread_join(thread, NULL);
    }
    printf("%ld\n", sums[2]);
    return 0;
}
