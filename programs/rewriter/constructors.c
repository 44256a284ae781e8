// What runs before main and after it: constructors and destructors by priority, atexit, on_exit
// with the exit code.
//# twins: first_constructor last_destructor at_end
//# expect-exit: 4
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>

static int state = 5;
__attribute__((constructor(101))) void first_constructor(void) { printf("first %d\n", state *= 3); }
__attribute__((constructor(102))) static void second(int argc, char **argv) { printf("second %d %d\n", argc, argv[argc] == 0); }
__attribute__((constructor)) static void third(void) { printf("third %d\n", state += 7); }
__attribute__((destructor)) static void early(void) { puts("destructor"); }
__attribute__((destructor(101))) void last_destructor(void) { printf("last %d\n", state); }
__attribute__((noinline)) void at_end(void) { printf("atexit %d\n", state -= 1); }
static void with_code(int code, void *text) { printf("on_exit %d %s\n", code, (char *)text); }
int main(void) {
    atexit(at_end);
    on_exit(with_code, "text");
    atexit(at_end);
    printf("main %d\n", state);
    exit(4);
}
