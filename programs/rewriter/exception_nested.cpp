// Exceptions inside of each other, out of callbacks that C code calls: one is thrown while another
// is handled, and holds it.
//# twins: compare_inside compare main
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>

struct Guard {
    int &count;
    ~Guard() { count++; }
};
static int destroyed, depth;

extern "C" int compare_inside(const void *a, const void *b) {
    Guard guard{destroyed};
    int x = *(const int *)a, y = *(const int *)b;
    if (x == 7 || y == 7)
        throw std::runtime_error("seven at " + std::to_string(depth));
    return (x > y) - (x < y);
}
static int (*volatile inside)(const void *, const void *) = compare_inside;

extern "C" int compare(const void *a, const void *b) {
    Guard guard{destroyed};
    int numbers[] = {5, 1, 4, 7, 3, 9};
    depth++;
    try {
        qsort(numbers, 6, sizeof(int), inside);
    } catch (std::runtime_error &) {
        if (depth % 3 == 0) {
            try {
                throw;
            } catch (std::exception &error) {
                std::throw_with_nested(std::logic_error(error.what()));
            }
        }
    }
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}
static void tell(const std::exception &error, int level) {
    printf("%*s%s\n", level * 2, "", error.what());
    try {
        std::rethrow_if_nested(error);
    } catch (const std::exception &within) {
        tell(within, level + 1);
    }
}
int main() {
    for (int round = 0; round < 20; round++) {
        int numbers[] = {3, 1, 2, 9, 8, 5, 4};
        depth = round;
        try {
            qsort(numbers, 7, sizeof(int), compare);
            printf("sorted %d %d\n", numbers[0], numbers[6]);
        } catch (const std::exception &error) {
            tell(error, 0);
        }
    }
    std::function<int(int)> back = [&](int n) -> int {
        if (n == 0)
            throw n;
        try {
            return back(n - 1);
        } catch (int thrown) {
            if (n < 9)
                throw thrown + n;
            return thrown;
        }
    };
    printf("%d\n", back(9));
    // How often a C library compares is its own business.
    return destroyed == 0;
}
