// The limit of harvesting a pointer chase, written by hand: CHASES chases, each through its own
// area or all through one, in one program that goes from one to the next at every load, with the
// cheapest switch there is. Tells steps for each of them in files as the programs of bench/programs
// do.
// usage: limit own|one MIB CHASES PROGRESS-FILE...   until the first file's last word is 1
#include "context.h"
#include "../programs/common.h"
#include <string.h>

enum { LINE = 64, BATCH = 4096 };

// rdi: pointer, rsi: count, r15: context. The first one returns when its count is up; the others
// begin anew elsewhere.
void **chase_among(void **p, long loads, struct context *own);
void begin_other(void);
__asm__(".globl chase_among\nchase_among:\n"
        "  push %rbx\n  push %rbp\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
        "  mov %rdx, %r15\n"
        "1: prefetcht0 (%rdi)\n"
        "  push %rdi\n  push %rsi\n"
        TO_THE_NEXT_UNTIL("2f")
        "2: pop %rsi\n  pop %rdi\n"
        "  mov (%rdi), %rdi\n  dec %rsi\n  jnz 1b\n"
        "  mov %rdi, %rax\n"
        "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbp\n  pop %rbx\n  ret\n"
        ".globl begin_other\nbegin_other:\n"
        "  pop %rdi\n  pop %rbx\n" // where to begin, the count of steps
        "3: mov $4096, %esi\n"
        "4: prefetcht0 (%rdi)\n"
        "  push %rdi\n  push %rsi\n"
        TO_THE_NEXT_UNTIL("5f")
        "5: pop %rsi\n  pop %rdi\n"
        "  mov (%rdi), %rdi\n  dec %rsi\n  jnz 4b\n"
        "  mov 24(%r15), %rbx\n  addq $4096, (%rbx)\n"
        "  jmp 3b\n");

static void **cycle(size_t mib) {
    size_t lines = (mib << 20) / LINE;
    char *base = area(mib << 20);
    uint32_t *order = malloc(lines * sizeof *order);
    one_cycle(order, lines);
    for (size_t i = 0; i < lines; i++)
        *(void **)(base + i * LINE) = base + (size_t)order[i] * LINE;
    free(order);
    return (void **)base;
}

int main(int argc, char **argv) {
    if (argc < 5 || argc != 4 + atoi(argv[3])) {
        fprintf(stderr, "usage: %s own|one MIB CHASES PROGRESS-FILE...\n", argv[0]);
        return 2;
    }
    int one = !strcmp(argv[1], "one");
    size_t mib = strtoull(argv[2], 0, 0);
    int chases = atoi(argv[3]);
    struct other *others = calloc(chases, sizeof *others);
    struct progress **told = calloc(chases, sizeof *told);
    void **first = 0;
    for (int i = 0; i < chases; i++) {
        progress_to(argv[4 + i]);
        told[i] = progress;
        void **p = one && i ? first + random_number() % ((mib << 20) / LINE) * (LINE / sizeof *p) : cycle(mib);
        if (!i)
            first = p;
        struct other *o = &others[i];
        o->context = (struct context){&others[(i + 1) % chases].context, (void *)begin_other, &o->stack[500]};
        o->stack[500] = (uint64_t)p;
        o->steps = &told[i]->steps;
        told[i]->working = i > 0;
    }
    uint64_t done = 0;
    progress = told[0];
    while (goes_on(done, 0)) {
        first = chase_among(first, BATCH, &others[0].context);
        done += BATCH;
    }
    return first == 0;
}
