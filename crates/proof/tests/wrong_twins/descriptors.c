// Thread-local variables by descriptors, beside calls of other modules' functions, which keep no
// more than the ABI says. Compiled, never run.
extern int puts(const char *text);

static __thread int many[4];

__attribute__((noinline)) int counts(const char *text, int a, int (*by)(int)) {
    int was = many[a & 3]++;
    puts(text);
    return was + by(many[1]) + a;
}
