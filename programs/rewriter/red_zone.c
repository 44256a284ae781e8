// Leaf functions that keep their variables below the stack pointer, while signals arrive.
//# twins: below recur_in_asm
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

static volatile int ticks;
static void tick(int number) { volatile char much[400]; much[ticks % 400] = (char)number; ticks++; }
__attribute__((noinline)) long below(long a, long b) {
    volatile long local[14];
    for (int i = 0; i < 14; i++) local[i] = a * i;
    long sum = 0;
    for (int i = 0; i < 14; i++) sum += local[i] ^ b;
    return sum;
}
// Everything in the red zone, to its last byte, by hand.
__attribute__((noinline)) long recur_in_asm(long a) {
    long result;
    __asm__ volatile("mov %1, -8(%%rsp)\n add $5, %1\n mov %1, -128(%%rsp)\n movl $7, -60(%%rsp)\n"
                     "mov -8(%%rsp), %0\n add -128(%%rsp), %0\n mov -60(%%rsp), %k1\n add %1, %0"
                     : "=&r"(result), "+r"(a) : : "cc", "memory");
    return result;
}
int main(void) {
    signal(SIGALRM, tick);
    struct itimerval every = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &every, 0);
    long first = below(12345, 678), same = 0, rounds = 0;
    while (ticks < 10 || rounds < 1000) {
        same += below(12345, 678) == first;
        rounds++;
    }
    setitimer(ITIMER_REAL, &never, 0);
    printf("%ld %d\n", first, same == rounds);
#ifdef __OPTIMIZE__
    printf("%ld\n", recur_in_asm(100));
#else
    // Unoptimised code keeps its own variables there.
    printf("%d\n", recur_in_asm(100) != 0 ? 212 : 0);
#endif
    return same != rounds;
}
