// Loops that leave registers alone, of several forms: one way out, several ways back, one within
// another, flags alive at its loads.
#include <stdio.h>
#include <stdlib.h>

struct node {
    struct node *next, *other;
    long key;
};

__attribute__((noinline)) struct node *follow(struct node *p, long steps) {
    do
        p = p->next;
    while (--steps);
    return p;
}
__attribute__((noinline)) struct node *zigzag(struct node *p, long steps) {
    do
        p = p->key & 1 ? p->next : p->other;
    while (--steps);
    return p;
}
__attribute__((noinline)) long count(struct node *p, struct node *end) {
    long found = 0;
    do {
        found += p->key > 5;
        p = p->next;
    } while (p != end);
    return found;
}
__attribute__((noinline)) long pairs(struct node *p, long steps) {
    long sum = 0;
    do {
        struct node *q = p;
        do {
            sum += q->key;
            q = q->other;
        } while (q != p);
        p = p->next;
    } while (--steps);
    return sum;
}

int main(int argc, char **argv) {
    enum { MANY = 64 };
    static struct node nodes[MANY];
    for (int i = 0; i < MANY; i++)
        nodes[i] = (struct node){&nodes[(i * 5 + 3) % MANY], &nodes[(i + 9) % MANY], i % 11};
    long a = argc, b = 3, sum = 0;
    for (int i = 1; i < 100; i++) {
        struct node *p = follow(nodes, i), *q = zigzag(p, i + a);
        sum += (p - nodes) * b + (q - nodes) + count(p, p) + pairs(q, 3);
        a ^= sum & 7, b += a;
    }
    printf("%ld %ld %ld\n", a, b, sum);
    return 0;
}
