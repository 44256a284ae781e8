/* Three counts of each thread, each beside those of the other threads, in three lines of an object.
 *
 * Found: false_sharing of "counts", with all three lines: of `bytes`, `words` and `lines`. */
#include "pin.h"
#include <pthread.h>
#include <stdio.h>

#define THREADS 2
#define ROUNDS 10000000

static _Alignas(64) struct {
    volatile long bytes[8], words[8], lines[8];
} counts;

static void __attribute__((noinline)) bytes(long id)
{
    for (long i = 0; i < ROUNDS / 100; i++)
        counts.bytes[id] += 1;
}

static void __attribute__((noinline)) words(long id)
{
    for (long i = 0; i < ROUNDS / 100; i++)
        counts.words[id] += 1;
}

static void __attribute__((noinline)) lines(long id)
{
    for (long i = 0; i < ROUNDS / 100; i++)
        counts.lines[id] += 1;
}

static void *run(void *given)
{
    long id = (long)given;
    pin((int)id);
    for (int i = 0; i < 300; i++) {
        bytes(id);
        words(id);
        lines(id);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%ld\n", counts.bytes[0] + counts.words[1] + counts.lines[0]);
    return 0;
}
