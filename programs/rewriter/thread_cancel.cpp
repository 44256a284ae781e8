// Cancelling a thread unwinds it by force: destructors and cleanup handlers run, catch-all clauses
// must pass it on.
//# flags: -pthread
//# twins: wait_forever cleanup
#include <atomic>
#include <cstdio>
#include <pthread.h>
#include <unistd.h>

static std::atomic<int> cleaned, passed, ready;
struct Guard { ~Guard() { cleaned++; } };
extern "C" __attribute__((noinline)) void cleanup(void *by) { cleaned += *static_cast<int *>(by); }
__attribute__((noinline)) void wait_forever(int n) {
    Guard guard;
    if (n > 0) {
        try {
            wait_forever(n - 1);
        } catch (...) {
            passed++;
            throw;
        }
        return;
    }
    ready = 1;
    for (;;) pause();
}
static void *cancelled(void *argument) {
    pthread_cleanup_push(cleanup, argument);
    wait_forever(5);
    pthread_cleanup_pop(0);
    return nullptr;
}
int main() {
    for (int by = 10; by < 40; by += 10) {
        pthread_t thread;
        ready = 0;
        pthread_create(&thread, nullptr, cancelled, &by);
        while (!ready) usleep(100);
        pthread_cancel(thread);
        void *result;
        pthread_join(thread, &result);
        std::printf("%d %d %d\n", cleaned.load(), passed.load(), result == PTHREAD_CANCELED);
    }
}
