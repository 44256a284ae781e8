// Threads that throw and catch through frames with cleanups, and destroy their thread-local objects
// at their end.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct Node { Node *next; uint64_t value; uint64_t pad[6]; };
static std::atomic<long> destroyed, ended;
struct Counts { ~Counts() { destroyed++; } };
struct Ends { long kept = 1; ~Ends() { ended += kept; } };
static thread_local Ends at_end;

__attribute__((noinline)) static Node *chase(Node *at, long steps, uint64_t &sum) {
    while (steps--) { at = at->next; sum = sum * 31 + at->value; }
    return at;
}
__attribute__((noinline)) static Node *deeper(Node *at, int depth, uint64_t &sum) {
    Counts counts;
    at = chase(at, 500, sum);
    if (depth == 0) throw std::runtime_error(std::to_string(sum % 1000));
    return deeper(at, depth - 1, sum);
}

int main() {
    constexpr int THREADS = 6, NODES = 1 << 15;
    std::vector<uint64_t> results(THREADS);
    std::vector<std::thread> threads;
    std::vector<std::vector<Node>> rings(THREADS);
    for (int t = 0; t < THREADS; t++) {
        rings[t].resize(NODES);
        for (uint64_t i = 0, at = 0; i < NODES; i++) {
            uint64_t to = (at * 12345 + 54321 + 2 * t) % NODES;
            rings[t][at] = {&rings[t][to], at * 7, {}};
            at = to;
        }
        threads.emplace_back([&, t] {
            Node *at = &rings[t][0];
            at_end.kept = t;
            for (int i = 0; i < 60; i++) {
                at = chase(at, 3000, results[t]);
                try {
                    deeper(at, 5, results[t]);
                } catch (const std::runtime_error &error) {
                    results[t] = results[t] * 31 + std::stol(error.what());
                }
            }
        });
    }
    for (auto &thread : threads) thread.join();
    for (auto result : results) std::printf("%016lx\n", static_cast<unsigned long>(result));
    std::printf("%ld destroyed, %ld ended\n", destroyed.load(), ended.load());
}
