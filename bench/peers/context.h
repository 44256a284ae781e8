#include <stdint.h>

// The ring: next context, where it goes on, its stack.
struct context {
    struct context *next;
    void *rip, *rsp;
};

// A chase that others go to: its steps are where assembly finds them.
struct other {
    struct context context;
    volatile uint64_t *steps;
    uint64_t stack[512];
};
