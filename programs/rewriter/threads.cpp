// Threads: cancellation unwinding C++ frames, thread-local storage, exceptions in several threads at once.
#include <atomic>
#include <cstdio>
#include <future>
#include <pthread.h>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <vector>

static thread_local int mine = 3;
static std::atomic<int> cleaned, ready;
struct Guard { ~Guard() { cleaned++; } };
__attribute__((noinline)) static void wait_forever(int n) {
    Guard guard;
    if (n > 0) { wait_forever(n - 1); return; }
    ready = 1;
    for (;;) pause();
}
static void *cancelled(void *) { wait_forever(5); return nullptr; }
int main() {
    pthread_t thread;
    pthread_create(&thread, nullptr, cancelled, nullptr);
    while (!ready) usleep(100);
    pthread_cancel(thread);
    void *result;
    pthread_join(thread, &result);
    std::printf("%d %d\n", cleaned.load(), result == PTHREAD_CANCELED);
    std::vector<std::future<int>> futures;
    for (int i = 0; i < 4; i++)
        futures.push_back(std::async(std::launch::async, [i] {
            mine += i;
            int caught = 0;
            for (int k = 0; k < 500; k++)
                try { if (k % 2) throw std::runtime_error("x"); caught += mine; } catch (const std::exception &) { caught++; }
            if (i == 3) throw caught;
            return caught;
        }));
    for (auto &future : futures)
        try { std::printf("%d\n", future.get()); } catch (int value) { std::printf("threw %d\n", value); }
    std::printf("%d\n", mine);
}
