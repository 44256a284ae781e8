/* a = b + s * c over large arrays, each thread its own half; main initialises all of them.
 *
 * Found: first_touch of the arrays, at the line in `initialise`.
 * With -DPARALLEL each thread initialises its own half: nothing is found. */
#include "pin.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 2
#define LENGTH (1 << 22)
#define ROUNDS 40

static double *a, *b, *c;

static void __attribute__((noinline)) initialise(long from, long to)
{
    for (long i = from; i < to; i++) {
        a[i] = 0;
        b[i] = (double)i;
        c[i] = 1;
    }
}

static void *__attribute__((noinline)) triad(void *given)
{
    long id = (long)given, from = id * LENGTH / THREADS, to = (id + 1) * LENGTH / THREADS;
    pin((int)id);
#ifdef PARALLEL
    initialise(from, to);
#endif
    for (int round = 0; round < ROUNDS; round++)
        for (long i = from; i < to; i++)
            a[i] = b[i] + 3 * c[i];
    return NULL;
}

int main(void)
{
    a = malloc(LENGTH * sizeof *a);
    b = malloc(LENGTH * sizeof *b);
    c = malloc(LENGTH * sizeof *c);
#ifndef PARALLEL
    initialise(0, LENGTH);
#endif
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, triad, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%f\n", a[LENGTH - 1]);
    return 0;
}
