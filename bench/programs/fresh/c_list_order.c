// expect: load=sum_list data=site level=DRAM memory=yes
// A long list, walked in the order in which its nodes were allocated.
#include "fresh.h"

struct node {
    struct node *next;
    long payload[7];
};

__attribute__((noinline)) static long sum_list(const struct node *at) {
    long sum = 0;
    for (; at; at = at->next) // HOT
        sum += at->payload[0]; // HOT
    return sum;
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    struct node *head = 0, **tail = &head;
    for (uint64_t bytes = 0; bytes < dram_bytes(); bytes += sizeof(struct node) + 16) {
        struct node *node = malloc(sizeof *node); // DATA
        node->payload[0] = bytes & 7;
        node->next = 0;
        *tail = node;
        tail = &node->next;
    }
    long sum = 0;
    begin_work(2);
    while (goes_on())
        sum += sum_list(head);
    printf("%ld\n", sum & 1);
}
