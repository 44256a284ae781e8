// C++ exceptions: through many frames, out of callbacks, rethrown, with destructors on the way, caught by base class, by
// value, by exception specification and by catch-all; in parts that compilers split off as cold.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

static int live;
struct Counted {
    std::string name;
    explicit Counted(std::string n) : name(std::move(n)) { live++; }
    ~Counted() { live--; std::printf("~%s\n", name.c_str()); }
};
struct Base { virtual ~Base() = default; virtual int code() const { return 1; } };
struct Derived : Base { int code() const override { return 2; } };

__attribute__((noinline)) int deep(int n) {
    Counted guard("d" + std::to_string(n));
    if (n == 0) throw std::runtime_error("bottom");
    int result = deep(n - 1);
    return result + n;
}
__attribute__((noinline)) void thrower(int kind) {
    switch (kind) {
    case 0: throw 42;
    case 1: throw std::string("text");
    case 2: throw Derived();
    case 3: throw std::out_of_range("range");
    case 4: throw std::make_unique<int>(7);
    case 5: throw "literal";
    case 6: throw 2.5;
    default: return;
    }
}
__attribute__((noinline)) std::string catcher(int kind) {
    Counted outer("outer");
    try {
        try {
            Counted inner("inner");
            thrower(kind);
            return "nothing";
        } catch (const std::logic_error &error) {
            std::printf("logic %s\n", error.what());
            throw;
        } catch (double value) {
            throw static_cast<int>(value * 2);
        }
    } catch (int value) {
        return "int " + std::to_string(value);
    } catch (const std::string &text) {
        return text;
    } catch (const Base &base) {
        return "base " + std::to_string(base.code());
    } catch (const std::exception &error) {
        return error.what();
    } catch (const std::unique_ptr<int> &pointer) {
        return "pointer " + std::to_string(*pointer);
    } catch (...) {
        return "something";
    }
}
extern "C" int compare(const void *a, const void *b) {
    int x = *static_cast<const int *>(a), y = *static_cast<const int *>(b);
    if (x == 13 || y == 13) throw x + y;
    return (x > y) - (x < y);
}
static void through_library() {
    int values[] = {5, 3, 13, 1};
    try {
        std::qsort(values, 4, sizeof(int), compare);
    } catch (int sum) {
        std::printf("out of qsort %d\n", sum > 0);
    }
    std::vector<int> v{3, 1, 2};
    try {
        std::sort(v.begin(), v.end(), [](int a, int b) { if (a + b == 5) throw "sorted"; return a < b; });
    } catch (const char *text) {
        std::puts(text);
    }
    try {
        (void)v.at(17);
    } catch (const std::out_of_range &) {
        std::puts("at");
    }
}
int main() {
    try {
        deep(6);
    } catch (const std::exception &error) {
        std::printf("%s %d\n", error.what(), live);
    }
    for (int kind = 0; kind < 8; kind++) std::printf("%d: %s\n", kind, catcher(kind).c_str());
    through_library();
    long caught = 0;
    for (int i = 0; i < 20000; i++) {
        try { thrower(i % 7); } catch (int v) { caught += v; } catch (...) { caught++; }
    }
    std::printf("%ld %d\n", caught, live);
    std::set_terminate([] { std::puts("terminated"); std::fflush(stdout); std::_Exit(7); });
    []() noexcept { Counted c("noexcept"); thrower(0); }();
}
