// An exception that meets noexcept: std::terminate, without unwinding further.
//# twins: promised
//# expect-exit: 7
#include <cstdio>
#include <cstdlib>
#include <exception>

struct Guard { const char *name; ~Guard() { std::printf("~%s\n", name); } };
__attribute__((noinline)) void thrower(int n) {
    if (n > 2) throw n;
    std::printf("%d\n", n);
}
__attribute__((noinline)) void promised(int n) noexcept { thrower(n); }
int main() {
    std::set_terminate([] { std::puts("terminated"); std::fflush(stdout); std::_Exit(7); });
    try {
        Guard guard{"guard"};
        for (int n = 0; n < 5; n++) promised(n);
    } catch (int n) {
        std::printf("caught %d\n", n);
    }
    return 1;
}
