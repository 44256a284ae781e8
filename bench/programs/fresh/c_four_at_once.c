// expect: load=sum_weights data=site level=DRAM memory=yes
// An array of pointers, four of which are followed in each turn of the loop.
#include "fresh.h"

struct person {
    long weight;
    char name[72];
};

__attribute__((noinline)) static long sum_weights(struct person *const *people, size_t count) {
    long sum = 0;
    for (size_t i = 0; i + 4 <= count; i += 4) {
        sum += people[i]->weight;     // HOT
        sum ^= people[i + 1]->weight; // HOT
        sum += people[i + 2]->weight; // HOT
        sum ^= people[i + 3]->weight; // HOT
    }
    return sum;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    size_t count = dram_bytes() / sizeof(struct person);
    struct person *all = malloc(count * sizeof *all); // DATA
    struct person **people = malloc(count * sizeof *people);
    for (size_t i = 0; i < count; i++) {
        all[i].weight = i;
        people[i] = &all[draw() % count];
    }
    long sum = 0;
    begin_work(2);
    while (goes_on())
        sum += sum_weights(people, count);
    printf("%d\n", sum != 0);
}
