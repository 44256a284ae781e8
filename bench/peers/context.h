// What limits written by hand have in common: contexts in a ring, and how one goes on with the
// next.
#include <stdint.h>

// The ring: next context, where it goes on, its stack.
struct context {
    struct context *next;
    void *rip, *rsp;
};

// The switch: r15 is the context that leaves, and then the one that goes on; one that comes back
// does so at the label.
#define TO_THE_NEXT_UNTIL(label) \
    "  lea " label "(%rip), %rax\n  mov %rax, 8(%r15)\n  mov %rsp, 16(%r15)\n" \
    "  mov (%r15), %r15\n  mov 16(%r15), %rsp\n  jmp *8(%r15)\n"

// A chase that others go to: its steps are where assembly finds them.
struct other {
    struct context context;
    volatile uint64_t *steps;
    uint64_t stack[512];
};
