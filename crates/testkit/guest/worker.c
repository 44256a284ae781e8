/* The program harvested in a guest: chases through a list, in threads and between system calls,
 * prints where it ends, and exits with a code of its own. `worker spin` runs until it is killed,
 * `worker company FILE` until FILE is not empty; `worker dies` ends by a signal that dumps core. */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LINES = 1 << 14 };
static void *list[LINES][8];
static _Thread_local long own;

__attribute__((noinline)) static void **chase(void **at, long steps)
{
    while (steps--)
        at = *at;
    return at;
}

static void *thread(void *number)
{
    own = (long)number;
    void **at = chase(list[own], 8000000);
    return (void *)((void *(*)[8])at - list + own);
}

int main(int argc, char **argv)
{
    for (long i = 0; i < LINES; i++)
        list[i][0] = list[(i * 5 + 1237) % LINES];
    void **at = list[0];
    if (argc == 2 && !strcmp(argv[1], "spin"))
        for (;;)
            at = chase(at, LINES);
    if (argc == 3 && !strcmp(argv[1], "company")) {
        struct stat file;
        for (long n = 0; n < 20000 && (stat(argv[2], &file) || file.st_size == 0); n++)
            at = chase(at, 1000000);
        at = chase(at, 50000000); /* who has spoken comes to its end */
        return at ? 4 : 5;
    }
    if (argc == 2 && !strcmp(argv[1], "dies"))
        abort();
    for (long n = 0; n < 4; n++) {
        pthread_t other;
        void *came;
        /* A scavenger without a dynamic loader gets none. */
        if (argc == 1 && !pthread_create(&other, 0, thread, (void *)n) && !pthread_join(other, &came))
            printf("thread %ld came to %ld\n", n, (long)came);
        at = chase(at, 8000001);
        errno = 0;
        fopen("/no/such", "r");
        printf("%ld: %ld, %s, %ld\n", n, (long)((void *(*)[8])at - list), strerror(errno), own);
    }
    return 40 + argc;
}
