// Ways to get around: tail calls, mutual recursion, function pointers and their identity, self-modifying nothing, constructors,
// atexit, vfork, signals on an alternate stack, inline assembly with local calls and odd control flow.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((constructor)) static void early(void) { puts("constructor"); }
__attribute__((destructor)) static void late(void) { puts("destructor"); }
static void at_end(void) { puts("atexit"); }
__attribute__((noinline)) int odd(unsigned n);
__attribute__((noinline)) int even(unsigned n) { return n == 0 ? 1 : odd(n - 1); }
__attribute__((noinline)) int odd(unsigned n) { return n == 0 ? 0 : even(n - 1); }
__attribute__((noinline)) static int one(int x) { return x + 1; }
__attribute__((noinline)) static int two(int x) { return x + 2; }
static int (*table[])(int) = {one, two, one, two};
__attribute__((noinline)) int tail(int (*f)(int), int x) { return f(x * 2); }
static void on_alternate(int number) { printf("signal %d\n", number); }
__attribute__((noinline)) long asm_flow(long n) {
    long result;
    __asm__("xor %0, %0\n1: test %1, %1\n je 3f\n add %1, %0\n dec %1\n jmp 1b\n2: ud2\n3:" : "=&r"(result), "+r"(n) : : "cc");
    return result;
}
__attribute__((noinline)) long asm_loop(long n) {
    long result = 0;
    __asm__("1: jrcxz 2f\n lea 3(%0), %0\n loop 1b\n2:" : "+r"(result), "+c"(n));
    return result;
}
__attribute__((noinline)) long asm_thunk(void) {
    long distance;
    __asm__("call 1f\n1: pop %0\n lea 1b(%%rip), %%rax\n sub %%rax, %0" : "=&r"(distance) : : "rax", "cc");
    return distance;
}
int main(void) {
    atexit(at_end);
    printf("%d %d\n", even(100001), odd(100001));
    printf("%d %d %d\n", table[0] == one, table[1] == one, table[2] == table[0]);
    for (int i = 0; i < 4; i++) printf("%d ", tail(table[i], i));
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigaltstack(&stack, 0);
    struct sigaction action = {.sa_handler = on_alternate, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR2, &action, 0);
    raise(SIGUSR2);
    printf("%ld %ld %ld\n", asm_flow(100), asm_loop(50), asm_thunk());
    fflush(stdout);
    pid_t child = vfork();
    if (child == 0) _exit(9);
    int status;
    waitpid(child, &status, 0);
    printf("%d\n", WEXITSTATUS(status));
    char *words[] = {"pear", "apple", "fig", "date"};
    int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
    qsort(words, 4, sizeof *words, by_text);
    for (int i = 0; i < 4; i++) printf("%s ", words[i]);
    puts("");
}
