// The program that `gleaner tour` looks at: what have all orders of a shop earned? Each order names
// its customer, whose discount stands in a hash table.
//
//   join ORDERS                 the table has the slots it began with, when customers were few
//   join ORDERS grown           the table has grown with the customers: the fix
//   join ORDERS beside FILE…    the same as the first, once other joins have begun; tells how long
//                               the look-ups took, and how many orders the others did meanwhile
//   join endless FILE           goes on until it is ended: one of the others; FILE has its count
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { CUSTOMERS = 1 << 21, FIRST_SLOTS = CUSTOMERS / 8 };

struct customer {
    struct customer *next; // in the same slot
    uint32_t number, percent;
    char name[48];
};

struct order {
    uint32_t customer, cents;
};

struct table {
    size_t slots;
    struct customer **first;
};

static uint64_t state = 88172645463325252ull;

static uint32_t random_below(uint32_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

static inline size_t slot_of(const struct table *table, uint32_t number) {
    uint32_t mixed = (number ^ number >> 16) * 2246822507u;
    return ((mixed ^ mixed >> 13) * 3266489909u >> 8) & (table->slots - 1);
}

static struct table table_of_customers(size_t slots) {
    struct table table = {slots, calloc(slots, sizeof(struct customer *))};
    struct customer *customers = calloc(CUSTOMERS, sizeof *customers);
    if (!table.first || !customers)
        exit(2);
    for (uint32_t i = 0; i < CUSTOMERS; i++) {
        // As they came in: not in the order of their numbers.
        struct customer *c = &customers[(i * 1664525u + 1013904223u) % CUSTOMERS];
        struct customer **slot = &table.first[slot_of(&table, i * 7)];
        *c = (struct customer){.next = *slot, .number = i * 7, .percent = 80 + i % 21};
        *slot = c;
    }
    return table;
}

static struct order *all_orders(size_t count) {
    struct order *orders = calloc(count, sizeof *orders);
    if (!orders)
        exit(2);
    for (size_t i = 0; i < count; i++)
        orders[i] = (struct order){random_below(CUSTOMERS) * 7, random_below(10000)};
    return orders;
}

__attribute__((noinline)) static const struct customer *find(const struct table *table, uint32_t number) {
    const struct customer *c = table->first[slot_of(table, number)];
    while (c->number != number)
        c = c->next;
    return c;
}

static uint64_t earnings(const struct table *table, const struct order *orders, size_t count) {
    uint64_t earned = 0;
    for (size_t i = 0; i < count; i++)
        earned += (uint64_t)orders[i].cents * find(table, orders[i].customer)->percent;
    return earned;
}

enum { MOST_OTHERS = 8, BATCH = 1000, ENDLESS_ORDERS = 1000000 };

// A count that several processes see.
static volatile uint64_t *shared_count(const char *path) {
    int file = open(path, O_RDWR | O_CREAT, 0666);
    void *map = MAP_FAILED;
    if (file >= 0 && !ftruncate(file, sizeof(uint64_t)))
        map = mmap(0, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map == MAP_FAILED) {
        perror(path);
        exit(2);
    }
    close(file);
    return map;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static uint64_t sum(volatile uint64_t *const *counts, int others) {
    uint64_t all = 0;
    for (int i = 0; i < others; i++)
        all += *counts[i];
    return all;
}

int main(int argc, char **argv) {
    int endless = argc == 3 && !strcmp(argv[1], "endless");
    int grown = argc == 3 && !strcmp(argv[2], "grown");
    int beside = argc > 2 && !endless && !strcmp(argv[2], "beside");
    size_t count = endless ? ENDLESS_ORDERS : argc > 1 ? strtoull(argv[1], 0, 10) : 0;
    if (!count || argc - 3 > MOST_OTHERS || (argc > 2 && !endless && !grown && !beside)) {
        fprintf(stderr, "usage: %s ORDERS [grown | beside [FILE...]], or %s endless FILE\n", argv[0], argv[0]);
        return 2;
    }
    struct table table = table_of_customers(grown ? CUSTOMERS : FIRST_SLOTS);
    struct order *orders = all_orders(count);
    if (endless) {
        volatile uint64_t *done = shared_count(argv[2]);
        uint64_t earned = 0;
        for (size_t from = 0;; from = (from + BATCH) % ENDLESS_ORDERS) {
            earned += earnings(&table, orders + from, BATCH);
            *done += BATCH;
            if (earned == 1) // it is not read, and must be computed all the same
                return 1;
        }
    }
    volatile uint64_t *counts[MOST_OTHERS];
    int others = 0;
    for (int i = 3; i < argc; i++)
        counts[others++] = shared_count(argv[i]);
    for (int i = 0; i < others; i++)
        for (double since = now(); !*counts[i] && now() - since < 20;)
            usleep(2000);
    uint64_t before = sum(counts, others);
    double began = now();
    uint64_t earned = earnings(&table, orders, count);
    double took = now() - began;
    printf("%zu orders of %d customers earned %.2f\n", count, CUSTOMERS, (double)earned / 10000);
    if (beside)
        printf("%.6f s, others did %llu orders\n", took, (unsigned long long)(sum(counts, others) - before));
    return 0;
}
