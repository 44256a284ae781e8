/* Each thread sums up its part of the points in its own element of an array of arguments. The
 * elements are 64 bytes, but the array begins 16 bytes behind a line's start: neighbours share a
 * line, and each thread's sums lie in two.
 *
 * Found: false_sharing of "malloc in main", written in `regress`.
 * With -DPAD=128 each element has lines of its own: nothing is found. */
#include "pin.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef PAD
#define PAD 8
#endif
#define THREADS 2
#define POINTS (1 << 16)
#ifndef ROUNDS
#define ROUNDS 4000
#endif

struct point { signed char x, y; };
struct argument {
    struct point *points;
    long count;
    long long sx, sxx, sy, syy, sxy;
    long id;
} __attribute__((aligned(PAD)));

static struct point *points;

/* The sums stay in memory, as they do where a compiler must expect that something aliases them. */
static void *__attribute__((noinline)) regress(void *given)
{
    struct argument *own = given;
    pin((int)own->id);
    for (int round = 0; round < ROUNDS; round++)
        for (long i = 0; i < own->count; i++) {
            own->sx += own->points[i].x;
            own->sxx += own->points[i].x * own->points[i].x;
            own->sy += own->points[i].y;
            own->syy += own->points[i].y * own->points[i].y;
            own->sxy += own->points[i].x * own->points[i].y;
            __asm__ volatile("" ::: "memory");
        }
    return NULL;
}

int main(void)
{
    points = malloc(POINTS * sizeof *points);
    for (long i = 0; i < POINTS; i++)
        points[i] = (struct point){ (signed char)(i * 7), (signed char)(i * 13) };
    char *memory = calloc(1, (THREADS + 1) * sizeof(struct argument) + 256);
    /* At the same place within a line wherever the heap begins. */
    unsigned long start = ((unsigned long)memory + 127) & -128ul;
    struct argument *arguments = (void *)(start + (PAD < 64 ? 16 : 0));
    pthread_t threads[THREADS];
    for (long id = 0; id < THREADS; id++) {
        arguments[id].points = points;
        arguments[id].count = POINTS;
        arguments[id].id = id;
        pthread_create(&threads[id], NULL, regress, &arguments[id]);
    }
    long long sum = 0;
    for (long id = 0; id < THREADS; id++) {
        pthread_join(threads[id], NULL);
        sum += arguments[id].sx + arguments[id].sxx + arguments[id].sxy + arguments[id].syy;
    }
    printf("%lld\n", sum);
    return 0;
}
