// Exceptions in a hot loop, so that every cache of an unwinder is warm and used again.
//# twins: thrower round
#include <cstdio>

struct Big { long words[20]; };
__attribute__((noinline)) void thrower(int kind) {
    switch (kind) {
    case 0: throw 42;
    case 1: throw 'c';
    case 2: throw 2.5f;
    case 3: throw Big{{1, 2, 3}};
    case 4: throw nullptr;
    default: return;
    }
}
__attribute__((noinline)) long round(int i) {
    try {
        thrower(i % 6);
    } catch (int value) {
        return value + i;
    } catch (const Big &big) {
        return big.words[2];
    } catch (float value) {
        return static_cast<long>(value * 4);
    } catch (...) {
        return 1;
    }
    return 0;
}
int main() {
    long caught = 0;
    for (int i = 0; i < 20000; i++) caught += round(i);
    std::printf("%ld\n", caught);
}
