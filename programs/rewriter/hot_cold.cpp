// Functions of which compilers split off the parts that are seldom run, into sections of their own;
// entered both ways.
//# flags-gcc: -freorder-blocks-and-partition
//# flags-clang: -mllvm -hot-cold-split=true
//# twins: hot
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

__attribute__((noinline, cold)) long rare(long x) { return x * 3 + std::printf("rare %ld\n", x); }
__attribute__((noinline)) long hot(long n, long trouble) {
    long sum = 0;
    for (long i = 0; i < n; i++) {
        sum += i ^ (sum >> 3);
        if (__builtin_expect(i == trouble, 0)) {
            sum += rare(i);
            if (rare(sum & 7) > 20) throw std::runtime_error("cold");
            for (int k = 0; k < 3; k++) sum ^= rare(k) << k;
            std::printf("back with %ld\n", sum);
        }
        if (__builtin_expect(sum < 0, 0)) {
            std::puts("below");
            std::abort();
        }
    }
    return sum;
}
int main() {
    for (long trouble : {1000L, 5L, 6L, 7L, 99L, 60L}) {
        try {
            std::printf("%ld\n", hot(100, trouble));
        } catch (const std::exception &error) {
            std::puts(error.what());
        }
    }
}
