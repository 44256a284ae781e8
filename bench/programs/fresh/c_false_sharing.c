// expect: load=work data=global:tallies level=dirty memory=yes
// Two threads count in neighbouring words of one static array.
#include "fresh.h"
#include <pthread.h>

static volatile long tallies[2];

static void *work(void *which) {
    volatile long *mine = &tallies[(long)which];
    while (goes_on())
        for (int i = 0; i < 10000; i++)
            ++*mine; // HOT
    return 0;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    pthread_t threads[2];
    begin_work(2.5);
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], 0);
    printf("%d\n", tallies[0] + tallies[1] > 0);
}
