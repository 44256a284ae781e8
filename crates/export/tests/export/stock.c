// A call chain with inlined functions: main -> serve -> lookup (inlined: step) and total.
#include <stdio.h>
#include <stdlib.h>

struct node { struct node *next; long value; long rest[6]; };
static struct node nodes[1 << 20];
long counts[1 << 22];
static volatile long sink;

static inline __attribute__((always_inline)) struct node *step(struct node *at)
{
    return at->next;
}

__attribute__((noinline)) struct node *lookup(struct node *at, long steps)
{
    while (steps--)
        at = step(at);
    return at;
}

static inline __attribute__((always_inline)) long mix(long x)
{
    for (int i = 0; i < 8; i++)
        x = (x ^ (x >> 7)) * 0x9e3779b97f4a7c15;
    return x;
}

__attribute__((noinline)) long total(long seed, long steps)
{
    long sum = 0;
    for (long i = 0; i < steps; i++) {
        seed = mix(seed + i);
        sum += counts[seed & ((1 << 22) - 1)];
    }
    return sum;
}

__attribute__((noinline)) long compute(long x, long steps)
{
    while (steps--)
        x = mix(x);
    return x;
}

__attribute__((noinline)) void serve(long requests)
{
    struct node *at = nodes;
    for (long i = 0; i < requests; i++) {
        at = lookup(at, 20000);
        sink += at->value + total(i, 20000);
        sink += compute(i, 20000);
    }
}

__attribute__((noinline)) long recurse(long depth)
{
    if (depth == 0)
        return compute(depth, 2000000);
    long below = recurse(depth - 1);
    sink += below;
    return below + compute(depth, 400000);
}

int main(void)
{
    long count = sizeof nodes / sizeof *nodes;
    for (long i = 0; i < count; i++)
        nodes[i].next = &nodes[(i + 524287) % count];
    for (long i = 0; i < 1 << 22; i++)
        counts[i] = i;
    serve(600);
    sink += recurse(5);
    printf("%ld\n", sink & 1);
    return 0;
}
