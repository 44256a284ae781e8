// Exceptions out of callbacks: through the C library's qsort, and through the C++ library's sort
// and a member function.
//# twins: compare through_sort
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

extern "C" __attribute__((noinline)) int compare(const void *a, const void *b) {
    int x = *static_cast<const int *>(a), y = *static_cast<const int *>(b);
    if (x == 13 || y == 13) throw x + y > 13;
    return (x > y) - (x < y);
}
__attribute__((noinline)) void through_sort(int bad) {
    std::vector<int> v{3, 1, 2};
    std::sort(v.begin(), v.end(), [bad](int a, int b) { if (a + b == bad) throw "sorted"; return a < b; });
    for (int value : v) std::printf("%d ", value);
    std::puts("");
}
int main() {
    for (int special : {12, 13}) {
        int values[] = {5, 3, special, 1};
        try {
            std::qsort(values, 4, sizeof(int), compare);
            std::printf("%d %d\n", values[0], values[3]);
        } catch (bool above) {
            std::printf("out of qsort %d\n", above);
        }
    }
    for (int bad : {5, 99}) {
        try {
            through_sort(bad);
        } catch (const char *text) {
            std::puts(text);
        }
    }
    try {
        std::vector<int> v(3);
        std::printf("%d\n", v.at(17));
    } catch (const std::out_of_range &) {
        std::puts("at");
    }
}
