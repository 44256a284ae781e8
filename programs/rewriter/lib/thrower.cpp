// A shared object that throws, and through which exceptions fly.
#include "thrower.h"

static int count;
struct Guard { ~Guard() { count++; } };
__attribute__((noinline)) int thrown_there(int n) {
    if (n & 1) throw Common{n, "there"};
    return n + 100;
}
__attribute__((noinline)) int through_there(int (*f)(int), int n) {
    Guard first;
    int sum = 0;
    for (int i = 1; i < 3; i++) {
        try {
            sum += f(n + i);
        } catch (int) {
            return -1;
        }
    }
    if (sum % 5 == 0) { Guard another, more, third; return sum; }
    return sum;
}
int cleaned() { return count; }
