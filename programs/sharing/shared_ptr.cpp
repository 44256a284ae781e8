// Each thread copies its own shared_ptr again and again. The objects are small and made one behind
// the other, so that the counts of references lie in one line.
//
// Found: false_sharing of what make_shared allocates, written in `copy`.
// With -DONE both threads copy the same pointer: true_sharing, and no false_sharing.
#include "pin.h"
#include <cstdio>
#include <memory>
#include <pthread.h>

static const int THREADS = 2;
static const long ROUNDS = 15000000;

struct task {
    std::shared_ptr<int> value;
    int id;
};

static void *__attribute__((noinline)) copy(void *given)
{
    task *own = static_cast<task *>(given);
    pin(own->id);
    long sum = 0;
    for (long i = 0; i < ROUNDS; i++) {
        std::shared_ptr<int> another = own->value;
        __asm__ volatile("" ::"r"(another.get()) : "memory");
        sum += *another;
    }
    *own->value += sum > 0;
    return nullptr;
}

int main()
{
    static task tasks[2 * 64];
    // Blocks are 32 bytes: the counts of one pair or the next share a line. They lie 8 bytes before
    // the values.
    std::shared_ptr<int> made[8];
    for (auto &one : made)
        one = std::make_shared<int>(1);
    auto line = [&](int at) { return (reinterpret_cast<unsigned long>(made[at].get()) - 8) / 64; };
    int first = 0;
    while (first < 6 && line(first) != line(first + 1))
        first++;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
#ifdef ONE
        tasks[64 * i].value = made[first];
#else
        tasks[64 * i].value = made[first + i];
#endif
        tasks[64 * i].id = i;
        pthread_create(&threads[i], nullptr, copy, &tasks[64 * i]);
    }
    for (pthread_t thread : threads)
        pthread_join(thread, nullptr);
    std::printf("%d\n", *made[first]);
    return 0;
}
