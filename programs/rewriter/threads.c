// Threads that hand work to each other: mutexes, condition variables, once, thread-local counters.
//# flags: -pthread
//# twins: worker produce
#include <pthread.h>
#include <stdio.h>

enum { ITEMS = 3000, WORKERS = 4, SLOTS = 16 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned ring[SLOTS], head, tail, started, done;
static unsigned long sums[WORKERS];
static _Thread_local unsigned mine;

static void only_once(void) { started++; }
__attribute__((noinline)) void *worker(void *argument) {
    unsigned long *sum = argument;
    pthread_once(&once, only_once);
    for (;;) {
        pthread_mutex_lock(&lock);
        while (head == tail && !done) pthread_cond_wait(&filled, &lock);
        if (head == tail) break;
        unsigned item = ring[tail++ % SLOTS];
        pthread_cond_signal(&emptied);
        pthread_mutex_unlock(&lock);
        mine++;
        *sum += (unsigned long)item * item % 1009;
    }
    pthread_mutex_unlock(&lock);
    return (void *)(unsigned long)mine;
}
__attribute__((noinline)) void produce(unsigned item) {
    pthread_mutex_lock(&lock);
    while (head - tail == SLOTS) pthread_cond_wait(&emptied, &lock);
    ring[head++ % SLOTS] = item;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&lock);
}
int main(void) {
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++) pthread_create(&threads[i], 0, worker, &sums[i]);
    for (unsigned i = 0; i < ITEMS; i++) produce(i * 7 + 3);
    pthread_mutex_lock(&lock);
    done = 1;
    pthread_cond_broadcast(&filled);
    pthread_mutex_unlock(&lock);
    unsigned long sum = 0, items = 0;
    for (int i = 0; i < WORKERS; i++) {
        void *count;
        pthread_join(threads[i], &count);
        items += (unsigned long)count;
        sum += sums[i];
    }
    printf("%lu %lu %u %u\n", items, sum, started, mine);
    return items != ITEMS;
}
