/* Each thread counts colours into its own part of an array of arguments on main's stack; the parts
 * of two threads meet within a line, where the counts that are hit most lie.
 *
 * Found: false_sharing of "stack of main", written in `count`. */
#include "pin.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 2
#define PIXELS (1 << 16)
#define ROUNDS 800
#define COLOURS 6

struct argument {
    unsigned char *pixels;
    int counts[COLOURS];
};
struct arguments {
    struct argument of[THREADS];
} __attribute__((aligned(64)));

static void *__attribute__((noinline)) count(void *given)
{
    struct argument *own = given;
    pin((int)((unsigned long)given / sizeof *own % 2));
    for (int round = 0; round < ROUNDS; round++)
        for (long i = 0; i < PIXELS; i++)
            __atomic_fetch_add(&own->counts[own->pixels[i]], 1, __ATOMIC_RELAXED);
    return NULL;
}

int main(void)
{
    struct arguments arguments = { 0 };
    unsigned char *pixels = malloc(PIXELS);
    for (long i = 0; i < PIXELS; i++)
        pixels[i] = (unsigned char)(i * 2654435761u >> 13) % COLOURS;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        arguments.of[i].pixels = pixels;
        pthread_create(&threads[i], NULL, count, &arguments.of[i]);
    }
    long sum = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        for (int c = 0; c < COLOURS; c++)
            sum += arguments.of[i].counts[c];
    }
    printf("%ld\n", sum);
    return 0;
}
