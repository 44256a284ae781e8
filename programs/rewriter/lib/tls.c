// A shared object with thread-local variables, some of its own, one that everybody sees.
_Thread_local int shown = 40;
static _Thread_local long a = 1;
static _Thread_local double b = 0.5;
static _Thread_local int many[50];

__attribute__((noinline)) long general_dynamic(int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) {
        shown += i;
        sum += shown * 3 - i;
    }
    return sum;
}
__attribute__((noinline)) long local_dynamic(int n, double keep) {
    double product = 1;
    for (int i = 0; i < n; i++) {
        a += i;
        b = b * 1.5 + keep;
        many[i % 50] += (int)a;
        product += b * many[(i * 3) % 50] + keep;
    }
    return a + (long)product + many[0];
}
