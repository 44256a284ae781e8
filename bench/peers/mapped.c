// The same limit as limit.c's where chases go through one area by a mapping of their own each, as
// programs apart have it: addresses are translated once for each, and what the area is mapped at is
// one value more that is alive.
// usage: mapped MIB CHASES AREA-FILE PROGRESS-FILE...   until the first file's last word is 1
#include "context.h"
#include "../programs/shared.h"

enum { BATCH = 4096 };

// rdi: base, rsi: place, rdx: count, r15: context. The first one returns when its count is up; the
// others begin anew.
size_t chase_among(const char *base, size_t at, long loads, struct context *own);
void begin_other(void);
__asm__(".globl chase_among\nchase_among:\n"
        "  push %rbx\n  push %rbp\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
        "  mov %rcx, %r15\n"
        "1: prefetcht0 (%rdi,%rsi)\n"
        "  push %rdi\n  push %rsi\n  push %rdx\n"
        TO_THE_NEXT_UNTIL("2f")
        "2: pop %rdx\n  pop %rsi\n  pop %rdi\n"
        "  mov (%rdi,%rsi), %rsi\n  dec %rdx\n  jnz 1b\n"
        "  mov %rsi, %rax\n"
        "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbp\n  pop %rbx\n  ret\n"
        ".globl begin_other\nbegin_other:\n"
        "  pop %rdi\n  pop %rsi\n"
        "3: mov $4096, %edx\n"
        "4: prefetcht0 (%rdi,%rsi)\n"
        "  push %rdi\n  push %rsi\n  push %rdx\n"
        TO_THE_NEXT_UNTIL("5f")
        "5: pop %rdx\n  pop %rsi\n  pop %rdi\n"
        "  mov (%rdi,%rsi), %rsi\n  dec %rdx\n  jnz 4b\n"
        "  mov 24(%r15), %rbx\n  addq $4096, (%rbx)\n"
        "  jmp 3b\n");

int main(int argc, char **argv) {
    if (argc < 5 || argc != 4 + atoi(argv[2])) {
        fprintf(stderr, "usage: %s MIB CHASES AREA-FILE PROGRESS-FILE...\n", argv[0]);
        return 2;
    }
    size_t bytes = strtoull(argv[1], 0, 0) << 20, at = 0;
    int chases = atoi(argv[2]);
    struct other *others = calloc(chases, sizeof *others);
    struct progress **told = calloc(chases, sizeof *told);
    const char *first = 0;
    for (int i = 0; i < chases; i++) {
        progress_to(argv[4 + i]);
        told[i] = progress;
        const char *base = shared_area(argv[3], bytes);
        if (!i)
            first = base;
        struct other *o = &others[i];
        o->context = (struct context){&others[(i + 1) % chases].context, (void *)begin_other, &o->stack[500]};
        o->stack[500] = (uint64_t)base;
        o->stack[501] = random_number() % (bytes / LINE) * LINE;
        o->steps = &told[i]->steps;
        told[i]->working = i > 0;
    }
    uint64_t done = 0;
    progress = told[0];
    while (goes_on(done, 0)) {
        at = chase_among(first, at, BATCH, &others[0].context);
        done += BATCH;
    }
    return at % LINE != 0;
}
