// Atomic operations by several threads: add, exchange, compare-and-swap of 8 and 16 bytes, bits, a
// lock made of them.
//# flags: -pthread -mcx16
//# twins: worker lock_by_hand wide
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { THREADS = 4, ROUNDS = 5000 };
static atomic_long sum, highest;
static atomic_uint bits;
static atomic_int held;
static long guarded;
static _Alignas(16) struct { unsigned long low, high; } both;

__attribute__((noinline)) void lock_by_hand(long by) {
    int free = 0;
    while (!atomic_compare_exchange_weak_explicit(&held, &free, 1, memory_order_acquire, memory_order_relaxed)) {
        free = 0;
        __builtin_ia32_pause();
    }
    guarded += by;
    atomic_store_explicit(&held, 0, memory_order_release);
}
__attribute__((noinline)) void wide(unsigned long by) {
    unsigned long low = both.low, high = both.high;
    unsigned char done;
    do {
        __asm__ volatile("lock cmpxchg16b %1; sete %0" : "=q"(done), "+m"(both), "+a"(low), "+d"(high)
                         : "b"(low + by), "c"(high + 2 * by) : "cc", "memory");
    } while (!done);
}
__attribute__((noinline)) void *worker(void *argument) {
    long mine = (long)argument;
    for (long i = 0; i < ROUNDS; i++) {
        atomic_fetch_add(&sum, i ^ mine);
        atomic_fetch_xor(&bits, 1u << ((i + mine) % 31));
        long seen = atomic_load(&highest);
        while (seen < i * mine && !atomic_compare_exchange_weak(&highest, &seen, i * mine)) {}
        lock_by_hand(i % 3);
        if (i % 5 == 0) wide((unsigned long)i);
    }
    return 0;
}
int main(void) {
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, worker, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    printf("%ld %ld %u %ld %lu %lu\n", sum, highest, bits, guarded, both.low, both.high);
    return guarded == 0;
}
