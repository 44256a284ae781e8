// expect: memory=no
// An interpreter of a small stack machine: its code, its stack and its variables are in L1.
#include "fresh.h"

enum op { PUSH, ADD, MUL, LOAD, STORE, LESS, JUMP_IF, POP, END };
static const int program[] = {
    PUSH, 0, STORE, 0, PUSH, 1, STORE, 1,              // i = 0, x = 1
    LOAD, 1, PUSH, 1664525, MUL, PUSH, 1013904223, ADD, STORE, 1,
    LOAD, 0, PUSH, 1, ADD, STORE, 0,                   // i++
    LOAD, 0, PUSH, 5000, LESS, JUMP_IF, 8, END,
};

__attribute__((noinline)) static unsigned run(void) {
    unsigned stack[64], variables[8];
    int top = 0;
    for (int at = 0;;) {
        switch (program[at++]) {
        case PUSH: stack[top++] = program[at++]; break;
        case ADD: top--; stack[top - 1] += stack[top]; break;
        case MUL: top--; stack[top - 1] *= stack[top]; break;
        case LOAD: stack[top++] = variables[program[at++]]; break;
        case STORE: variables[program[at++]] = stack[--top]; break;
        case LESS: top--; stack[top - 1] = stack[top - 1] < stack[top]; break;
        case JUMP_IF: at = stack[--top] ? program[at] : at + 1; break;
        case POP: top--; break;
        case END: return variables[1];
        }
    }
}

int main(int argc, char **argv) {
    sizes(argc, argv);
    unsigned sum = 0;
    begin_work(2);
    while (goes_on())
        sum += run();
    printf("%u\n", sum & 1);
}
