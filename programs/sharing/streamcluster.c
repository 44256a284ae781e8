/* Threads that weigh whether to open a centre keep a sum each in one array, `work_mem`, whose
 * parts are not as long as a line, and flags of their points in another, `switch_membership`,
 * a byte each, of which they write the same few again and again at the border of their parts.
 *
 * Found: false_sharing of the allocation in `open_centres`, written in `weigh`. */
#include "pin.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 2
#define POINTS 64
#define ROUNDS 3000000
#define STRIDE 3

static double *work_mem;
static unsigned char *switch_membership;
static double cost[POINTS];

static void *__attribute__((noinline)) weigh(void *given)
{
    long id = (long)given;
    double *own = work_mem + id * STRIDE;
    pin((int)id);
    long from = id * POINTS / THREADS, to = (id + 1) * POINTS / THREADS;
    for (int round = 0; round < ROUNDS; round++)
        for (long i = from; i < to; i++) {
            own[0] += cost[i];
            switch_membership[i] ^= 1;
            if (cost[i] > 3)
                own[1] += 1;
            __asm__ volatile("" ::: "memory");
        }
    return NULL;
}

static void __attribute__((noinline)) open_centres(void)
{
    work_mem = aligned_alloc(64, 64);
    switch_membership = aligned_alloc(64, POINTS);
    for (int i = 0; i < THREADS * STRIDE; i++)
        work_mem[i] = 0;
    for (int i = 0; i < POINTS; i++) {
        switch_membership[i] = 0;
        cost[i] = i * 7 % 5;
    }
}

int main(void)
{
    pthread_t threads[THREADS];
    open_centres();
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, weigh, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%.0f %.0f %d\n", work_mem[0], work_mem[STRIDE], switch_membership[5]);
    return 0;
}
