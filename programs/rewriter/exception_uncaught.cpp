// Nobody catches it: the library says what it was and aborts.
//# twins: thrower
//# expect-signal: 6
#include <cstdio>
#include <stdexcept>

struct Guard { ~Guard() { std::puts("not cleaned"); } };
__attribute__((noinline)) void thrower(int n) {
    Guard guard;
    if (n == 0) throw std::runtime_error("nobody wants this");
    thrower(n - 1);
}
int main() {
    std::puts("before");
    std::fflush(stdout);
    thrower(3);
}
