// The other source of lto.c.
int shared = 3;
int here(int x);
int small(int x) { return x & 1 ? x + 1 : x - 1; }
__attribute__((noinline)) int there(int x, int (*f)(int)) {
    shared += x % 5;
    return x % 3 ? f(x) + here(x / 2) : small(x) - shared;
}
