// Exceptions in constructors, in arrays half built, in members, and by new; function-try blocks;
// nested exceptions.
//# twins: build_array unwrap
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

static int live, limit = 1000;
struct Part {
    int number = ++live;
    Part() { if (live > limit) { live--; throw std::runtime_error("limit"); } }
    ~Part() { std::printf("-%d ", number); live--; }
};
struct Whole {
    Part a, b;
    std::string text = "a text that is too long for the small buffer";
    Part c;
    Whole() try : a(), b(), c() { std::puts("whole"); } catch (const std::exception &e) { std::printf("(%s) ", e.what()); }
};
__attribute__((noinline)) int build_array(int most) {
    limit = most;
    try {
        Part *parts = new Part[5];
        delete[] parts;
        return 1;
    } catch (const std::exception &) {
        return 0;
    }
}
__attribute__((noinline)) void unwrap(const std::exception &error, int depth) {
    std::printf("%*s%s\n", depth, "", error.what());
    try {
        std::rethrow_if_nested(error);
    } catch (const std::exception &inner) {
        unwrap(inner, depth + 1);
    }
}
__attribute__((noinline)) void wrap(int n) {
    try {
        if (n == 0) throw std::logic_error("core");
        wrap(n - 1);
    } catch (...) {
        std::throw_with_nested(std::runtime_error("layer " + std::to_string(n)));
    }
}
int main() {
    int whole = build_array(5), half = build_array(3);
    std::printf("%d %d\n", whole, half);
    for (int most : {9, 2, 1}) {
        limit = most;
        try { Whole whole; } catch (const std::exception &e) { std::printf("%s %d\n", e.what(), live); }
    }
    try { wrap(4); } catch (const std::exception &e) { unwrap(e, 0); }
    try {
        volatile std::size_t much = static_cast<std::size_t>(-1) / 4;
        char *volatile got = new char[much];
        delete[] got;
    } catch (const std::bad_alloc &) {
        std::puts("no memory");
    }
    std::exception_ptr kept;
    try { throw 17; } catch (...) { kept = std::current_exception(); }
    try { std::rethrow_exception(kept); } catch (int n) { std::printf("%d\n", n); }
    return live;
}
