/* Processes that share memory write different words of one line in it.
 *
 * Found: false_sharing of the shared memory, in `count`. With -DSAME they write the same word:
 * true_sharing. With -DAPART each has a page of its own: nothing. */
#include "pin.h"
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES 2
#define ROUNDS 60000000

#ifdef SAME
#define STEP 0
#elif defined APART
#define STEP 512
#else
#define STEP 1
#endif

static void __attribute__((noinline)) count(volatile long *own)
{
    for (long i = 0; i < ROUNDS; i++)
        *own += 1;
}

int main(void)
{
    long *counts = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counts == MAP_FAILED)
        return 1;
    for (int i = 0; i < PROCESSES; i++)
        if (fork() == 0) {
            pin(i);
            count(counts + i * STEP);
            _exit(0);
        }
    for (int i = 0; i < PROCESSES; i++)
        wait(NULL);
    printf("%d\n", counts[0] != 0);
    return 0;
}
