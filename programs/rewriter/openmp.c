// Threads by OpenMP: loops outlined by the compiler, tasks, ordered parts.
//# compilers: gcc
//# flags: -fopenmp
//# twins: main
#include <omp.h>
#include <stdio.h>

static long squares[10000];

int main(void) {
    long sum = 0, of_tasks = 0;
    omp_set_num_threads(3);
#pragma omp parallel for reduction(+ : sum) schedule(dynamic, 7)
    for (int i = 0; i < 10000; i++) {
        squares[i] = (long)i * i % 97;
        sum += squares[i];
    }
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 50; i++) {
#pragma omp task firstprivate(i) shared(of_tasks)
        {
#pragma omp atomic
            of_tasks += i * i;
        }
    }
#pragma omp parallel for ordered
    for (int i = 0; i < 10; i++) {
#pragma omp ordered
        printf("%d ", i);
    }
    printf("%ld %ld\n", sum, of_tasks);
}
