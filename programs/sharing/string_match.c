/* Each thread works on a small buffer that main allocated for it, one right behind the other: the
 * allocator puts them side by side.
 *
 * Found: false_sharing of the allocation in `new_key`, written in `encrypt`. */
#include "pin.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 2
#define ROUNDS 40000000

struct task { unsigned *key; int id; } __attribute__((aligned(128)));

static void *__attribute__((noinline)) encrypt(void *given)
{
    struct task *own = given;
    pin(own->id);
    unsigned *key = own->key;
    for (long i = 0; i < ROUNDS; i++) {
        __atomic_fetch_add(&key[i & 3], (unsigned)i, __ATOMIC_RELAXED);
        if (key[(i + 1) & 3] == 0xffffffff)
            return NULL;
    }
    return NULL;
}

static unsigned *__attribute__((noinline)) new_key(void)
{
    return calloc(1, 24);
}

int main(void)
{
    static struct task tasks[THREADS];
    pthread_t threads[THREADS];
    unsigned *keys[8];
    /* Chunks are 32 bytes: of two behind one another, one pair or the next shares a line. */
    for (int i = 0; i < 8; i++)
        keys[i] = new_key();
    int first = 0;
    while (first < 6 && (unsigned long)keys[first] / 64 != (unsigned long)keys[first + 1] / 64)
        first++;
    for (int i = 0; i < THREADS; i++) {
        tasks[i] = (struct task){ keys[first + i], i };
        pthread_create(&threads[i], NULL, encrypt, &tasks[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%u\n", keys[first][0]);
    return 0;
}
