// Coroutines: frames on the heap, resumed through pointers into the middle of what was one
// function.
//# compilers: gcc
//# flags: -std=c++20
//# twins: main
#include <coroutine>
#include <cstdio>
#include <exception>
#include <stdexcept>

struct Numbers {
    struct promise_type {
        long value = 0;
        std::exception_ptr error;
        Numbers get_return_object() { return Numbers{std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(long v) noexcept { value = v; return {}; }
        void return_void() {}
        void unhandled_exception() { error = std::current_exception(); }
    };
    std::coroutine_handle<promise_type> handle;
    ~Numbers() { handle.destroy(); }
    bool next() {
        handle.resume();
        if (handle.promise().error) std::rethrow_exception(handle.promise().error);
        return !handle.done();
    }
};
static Numbers fibonacci(int n) {
    long a = 0, b = 1;
    for (int i = 0; i < n; i++) {
        co_yield a;
        long c = a + b;
        a = b, b = c;
        if (c == 89) throw std::runtime_error("enough");
    }
}
int main() {
    for (int n : {5, 50}) {
        Numbers numbers = fibonacci(n);
        try {
            while (numbers.next()) std::printf("%ld ", numbers.handle.promise().value);
            std::puts("end");
        } catch (const std::exception &error) {
            std::puts(error.what());
        }
    }
}
