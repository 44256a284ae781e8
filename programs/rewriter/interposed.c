// A library's own calls go to the program's definition where there is one; the library's function
// is found by dlsym.
//# library: lib/interposing.c
//# flags: -rdynamic
//# flags-clang: -fsemantic-interposition
//# twins: replaced asks
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int asks(int n);
int kept(int n);
__attribute__((noinline)) int replaced(int n) {
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "replaced");
    return next(n) * 10 + 1;
}
int main(void) {
    for (int i = 0; i < 4; i++) printf("%d %d\n", asks(i), kept(i));
    return dlsym(RTLD_DEFAULT, "replaced") != (void *)replaced;
}
