// Functions chosen at load time by resolvers, which run before anything else does; called, pointed
// to and compared.
//# twins: choose_sum sum_wide call
#include <stdio.h>

long sum_plain(const int *v, int n) { long s = 0; for (int i = 0; i < n; i++) s += v[i]; return s; }
__attribute__((noinline)) long sum_wide(const int *v, int n) {
    long a = 0, b = 0;
    for (int i = 0; i + 1 < n; i += 2) a += v[i], b += v[i + 1];
    return a + b + (n % 2 ? v[n - 1] : 0) + 1000000;
}
static int one(void) { return 11; }
static int other(void) { return 22; }
long (*choose_sum(void))(const int *, int) { return __builtin_cpu_init(), sizeof(long) == 8 ? sum_wide : sum_plain; }
static int (*choose_number(void))(void) { return sizeof(void *) == 8 ? other : one; }
long sum(const int *v, int n) __attribute__((ifunc("choose_sum")));
int number(void) __attribute__((ifunc("choose_number")));
__attribute__((noinline)) long call(long (*f)(const int *, int), const int *v, int n) { return f(v, n); }
int main(void) {
    int v[101];
    for (int i = 0; i < 101; i++) v[i] = i * i % 37;
    printf("%ld %d\n", sum(v, 101), number());
    long (*volatile pointer)(const int *, int) = sum;
    printf("%ld %d\n", call(pointer, v, 100), pointer == sum);
}
