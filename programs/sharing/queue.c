/* A queue with a lock that both threads take for each element: head, tail and count belong to both.
 *
 * Found: true_sharing of "queue"; no false_sharing. */
#include "pin.h"
#include <pthread.h>
#include <stdio.h>

#define THREADS 2
#define ROUNDS 8000000
#define SLOTS 8

static _Alignas(128) struct {
    int lock;
    unsigned head, tail, count;
    int slots[SLOTS];
} queue;

static void *__attribute__((noinline)) take_turns(void *given)
{
    pin((int)(long)given);
    long sum = 0;
    for (long i = 0; i < ROUNDS; i++) {
        while (__atomic_exchange_n(&queue.lock, 1, __ATOMIC_ACQUIRE))
            __builtin_ia32_pause();
        if (queue.count < SLOTS / 2) {
            queue.slots[queue.tail++ % SLOTS] = (int)i;
            queue.count++;
        } else {
            sum += queue.slots[queue.head++ % SLOTS];
            queue.count--;
        }
        __atomic_store_n(&queue.lock, 0, __ATOMIC_RELEASE);
    }
    return (void *)sum;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, take_turns, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%u\n", queue.tail);
    return 0;
}
