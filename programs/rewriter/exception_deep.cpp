// An exception through many frames, each with a destructor to run and values of its own.
//# twins: deep
#include <cstdio>
#include <stdexcept>
#include <string>

static int live;
struct Counted {
    std::string name;
    explicit Counted(std::string n) : name(std::move(n)) { live++; }
    ~Counted() { live--; std::printf("~%s ", name.c_str()); }
};
__attribute__((noinline)) int deep(int n) {
    Counted guard("d" + std::to_string(n));
    if (n == 0) throw std::runtime_error("bottom");
    int result = deep(n - 1);
    return result + n;
}
int main() {
    try {
        deep(40);
    } catch (const std::exception &error) {
        std::printf("%s %d\n", error.what(), live);
    }
    return live;
}
