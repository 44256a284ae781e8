// Objects with static and thread storage: guards, order of construction and destruction, one that
// throws while it is made.
//# flags: -pthread
//# twins: instance attempt
#include <cstdio>
#include <stdexcept>
#include <thread>

struct Noisy {
    const char *name;
    explicit Noisy(const char *n) : name(n) { std::printf("+%s\n", name); }
    ~Noisy() { std::printf("-%s\n", name); }
};
static Noisy global("global");
static thread_local Noisy per_thread("thread");
__attribute__((noinline)) Noisy &instance() { static Noisy local("local"); return local; }
static int tries;
__attribute__((noinline)) int attempt() {
    static int made = [] { if (++tries < 3) throw std::runtime_error("not yet"); return tries * 10; }();
    return made;
}
int main() {
    std::printf("%d\n", &instance() == &instance());
    std::thread([] { std::printf("in %s\n", per_thread.name); }).join();
    for (int i = 0; i < 4; i++) {
        try { std::printf("%d\n", attempt()); } catch (const std::exception &error) { std::puts(error.what()); }
    }
    std::printf("%s %s\n", per_thread.name, global.name);
}
