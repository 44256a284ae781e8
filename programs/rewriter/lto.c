// Link-time optimisation: functions of two sources, inlined and specialised over the border.
//# with: lib/lto_other.c
//# flags: -flto
//# flags-clang: -fuse-ld=lld
//# needs-clang: ld.lld
//# twins: here there
#include <stdio.h>

int there(int x, int (*f)(int));
int small(int x);
extern int shared;
__attribute__((noinline)) int here(int x) { return small(x) * 3 + shared; }
int main(void) {
    long sum = 0;
    for (int i = 0; i < 200; i++) sum = sum * 3 % 1000003 + there(i, here);
    printf("%ld %d\n", sum, shared);
}
