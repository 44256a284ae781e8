// Exceptions in several threads at once, one of them carried over to the thread that waits for it.
//# flags: -pthread
//# twins: caught_in
#include <cstdio>
#include <future>
#include <stdexcept>
#include <vector>

static thread_local int mine = 3;
__attribute__((noinline)) int caught_in(int thread) {
    mine += thread;
    int caught = 0;
    for (int k = 0; k < 500; k++) {
        try {
            if (k % 2) throw std::runtime_error("x");
            caught += mine;
        } catch (const std::exception &) {
            caught++;
        }
    }
    if (thread == 3) throw caught;
    return caught;
}
int main() {
    std::vector<std::future<int>> futures;
    for (int i = 0; i < 4; i++) futures.push_back(std::async(std::launch::async, caught_in, i));
    for (auto &future : futures) {
        try {
            std::printf("%d\n", future.get());
        } catch (int value) {
            std::printf("threw %d\n", value);
        }
    }
    std::printf("%d\n", mine);
}
