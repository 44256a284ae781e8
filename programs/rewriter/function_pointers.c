// Function pointers keep their identity wherever they come from: an address in code, in data, from
// the dynamic linker, or handed through a callback; and they may be looked up.
//# twins: find apply
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*op)(int, int);
__attribute__((noinline)) int add(int a, int b) { return a + b; }
__attribute__((noinline)) int sub(int a, int b) { return a - b; }
__attribute__((noinline)) int mul(int a, int b) { return a * b; }
static const struct { const char *name; op f; } table[] = {{"add", add}, {"sub", sub}, {"mul", mul}};
static op from_data = add;

__attribute__((noinline)) op find(const char *name) {
    for (unsigned i = 0; i < 3; i++)
        if (strcmp(table[i].name, name) == 0) return table[i].f;
    return 0;
}
__attribute__((noinline)) const char *name_of(op f) {
    for (unsigned i = 0; i < 3; i++)
        if (table[i].f == f) return table[i].name;
    return "?";
}
__attribute__((noinline)) int apply(op f, int a, int b) { return f(a, b) + (f == add) * 1000; }
__attribute__((noinline)) op itself(op f) { return f == (op)itself ? add : f; }
int main(void) {
    op volatile from_code = add;
    printf("%d %d %d\n", from_data == add, from_code == find("add"), find("sub") == add);
    for (unsigned i = 0; i < 3; i++) printf("%s %d\n", name_of(table[i].f), apply(table[i].f, 7, 5));
    int (*volatile compare)(const char *, const char *) = strcmp;
    void *(*volatile get)(size_t) = malloc;
    printf("%d %d\n", compare == strcmp, get == malloc);
    printf("%d\n", itself((op)itself) == add);
    unsigned hash = 0;
    for (unsigned i = 0; i < 3; i++) hash = hash * 2 + ((uintptr_t)table[i].f == (uintptr_t)find(table[i].name));
    return hash != 7;
}
