// Exceptions across shared objects, both rewritten: thrown there and caught here, and through its
// frames by a callback.
//# library: lib/thrower.cpp
//# twins: called_back thrown_there through_there
#include "lib/thrower.h"
#include <cstdio>

__attribute__((noinline)) int called_back(int n) {
    if (n % 3 == 0) throw Common{n, "here"};
    return n * 2;
}
int main() {
    for (int i = 0; i < 7; i++) {
        try {
            std::printf("%d\n", thrown_there(i));
        } catch (const Common &common) {
            std::printf("%s %d\n", common.where, common.number);
        }
        try {
            std::printf("%d\n", through_there(called_back, i));
        } catch (const Common &common) {
            std::printf("%s %d\n", common.where, common.number);
        }
    }
    return cleaned() != 10;
}
