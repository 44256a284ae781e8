// fork: both sides go on in twins, with their own memory, and talk through a pipe.
//# twins: child_part parent_part
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static long memory = 10;
__attribute__((noinline)) int child_part(int out, int n) {
    for (int i = 0; i < 1000; i++) memory = memory * 31 + n;
    return write(out, &memory, sizeof memory) == sizeof memory ? n : 99;
}
__attribute__((noinline)) long parent_part(int in, pid_t child, int n) {
    long got = 0;
    int status;
    if (read(in, &got, sizeof got) != sizeof got) return -1;
    waitpid(child, &status, 0);
    return got % 1000003 + (WIFEXITED(status) && WEXITSTATUS(status) == n);
}
int main(void) {
    setvbuf(stdout, 0, _IONBF, 0);
    for (int n = 1; n < 5; n++) {
        int ends[2];
        if (pipe(ends)) return 1;
        pid_t child = fork();
        if (child == 0) _exit(child_part(ends[1], n));
        printf("%ld\n", parent_part(ends[0], child, n));
        memory += n;
    }
    printf("%ld\n", memory);
}
