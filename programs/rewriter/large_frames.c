// Frames of many pages, touched page by page by what compilers insert, with guards against
// overwriting.
//# flags: -fstack-clash-protection -fstack-protector-all
//# twins: large larger
#include <stdio.h>
#include <string.h>

__attribute__((noinline)) unsigned long large(unsigned long seed) {
    volatile unsigned long words[5000];
    for (int i = 0; i < 5000; i++) words[i] = seed = seed * 6364136223846793005ul + 1442695040888963407ul;
    unsigned long sum = 0;
    for (int i = 0; i < 5000; i += 7) sum ^= words[i];
    return sum;
}
__attribute__((noinline)) unsigned long larger(int n, unsigned long seed) {
    char pages[70000];
    memset(pages, n, sizeof pages);
    __asm__ volatile("" : : "r"(pages) : "memory");
    unsigned long below = n == 0 ? large(seed) : larger(n - 1, seed + pages[n * 1000]);
    return below * 3 + pages[69999];
}
int main(void) {
    printf("%lx\n%lx\n", large(1), larger(12, 99));
}
