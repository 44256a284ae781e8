// expect: load=gather|operator data=site level=DRAM memory=yes
// A pool of threads that gathers from one vector that all share.
#include "fresh.h"
#include <condition_variable>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

class Pool {
    std::mutex lock;
    std::condition_variable changed;
    std::queue<std::function<void()>> tasks;
    std::vector<std::thread> threads;
    bool ends = false;

    void serve() {
        for (;;) {
            std::function<void()> task;
            {
                std::unique_lock hold(lock);
                changed.wait(hold, [&] { return ends || !tasks.empty(); });
                if (tasks.empty())
                    return;
                task = std::move(tasks.front());
                tasks.pop();
            }
            task();
        }
    }

  public:
    explicit Pool(int count) {
        for (int i = 0; i < count; i++)
            threads.emplace_back([this] { serve(); });
    }
    void add(std::function<void()> task) {
        std::lock_guard hold(lock);
        tasks.push(std::move(task));
        changed.notify_one();
    }
    void finish() {
        {
            std::lock_guard hold(lock);
            ends = true;
        }
        changed.notify_all();
        for (auto &thread : threads)
            thread.join();
    }
};

__attribute__((noinline)) static float gather(const std::vector<float> &field, uint32_t seed, int reads) {
    float sum = 0;
    uint64_t at = seed;
    for (int i = 0; i < reads; i++) {
        at = at * 6364136223846793005ull + 1442695040888963407ull;
        sum += field[(at >> 32) * field.size() >> 32]; // HOT
    }
    return sum;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    std::vector<float> field(dram_bytes() / sizeof(float), 1.0f); // DATA
    float sums[300];
    Pool pool(2);
    for (int i = 0; i < 300; i++)
        pool.add([&field, &sums, i] { sums[i] = gather(field, i, 1000000); });
    pool.finish();
    printf("%d\n", sums[3] > 0);
}
