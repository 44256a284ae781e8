// clone with a stack of its own: first a child with its own memory, then one that shares the memory
// like a thread.
//# twins: child
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

static int seen[4];
__attribute__((noinline)) int child(void *argument) {
    int n = *(int *)argument;
    for (int i = 0; i < 4; i++) seen[i] += n * (i + 1);
    return seen[3] & 0x7f;
}
__attribute__((noinline)) static int start(int flags, int n) {
    size_t size = 256 << 10;
    char *stack = malloc(size);
    pid_t pid = clone(child, stack + size, flags | SIGCHLD, &n);
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) exit(1);
    free(stack);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
int main(void) {
    const int flags[] = {0, CLONE_VM, CLONE_VM | CLONE_FILES | CLONE_FS};
    for (int i = 0; i < 3; i++) {
        int status = start(flags[i], 5 + i * 2);
        printf("%d %d\n", status, seen[3]);
    }
}
