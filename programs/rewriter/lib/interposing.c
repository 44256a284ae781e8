// A shared object one of whose functions is replaced by the program.
__attribute__((noinline)) int replaced(int n) { return n + 2; }
__attribute__((noinline)) int kept(int n) { return n * 5; }
int (*volatile choice)(int) = kept;
__attribute__((noinline)) int asks(int n) { return replaced(n) + choice(n + 1); }
