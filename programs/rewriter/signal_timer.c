// A timer interrupts arithmetic at arbitrary places; neither the sums nor the handler may notice.
//# twins: work tick
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

static volatile sig_atomic_t ticks;
static volatile unsigned long scratch;
__attribute__((noinline)) void tick(int number) {
    unsigned long x = number;
    double y = 1.5;
    for (int i = 0; i < 20; i++) { x = x * 6364136223846793005ul + 1; y = y * 1.25 - x % 7; }
    scratch = x + (long)y;
    ticks++;
}
__attribute__((noinline)) unsigned long work(unsigned long seed) {
    unsigned long a = seed, b = seed ^ 0x5555, c = 0;
    double d = 1;
    for (int i = 0; i < 4000; i++) {
        a = a * 2862933555777941757ul + 3037000493ul;
        b ^= a >> 17;
        c += b < a ? b : a;
        d = d * 0.999 + (c & 0xff);
    }
    return c + (unsigned long)d;
}
int main(void) {
    signal(SIGALRM, tick);
    struct itimerval every = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &every, 0);
    unsigned long first = work(42);
    long same = 0, rounds = 0;
    while (ticks < 20 || rounds < 100) {
        same += work(42) == first;
        rounds++;
    }
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, 0);
    printf("%lu %d\n", first, same == rounds);
    return same != rounds;
}
