// An interpreter with computed goto: labels as addresses, taken from a table of pointers, with a
// jump behind each operation.
//# twins: interpret
#include <stdio.h>

__attribute__((noinline)) int interpret(const unsigned char *code) {
    static const void *const labels[] = {&&stop, &&inc, &&dec, &&twice, &&show, &&skip};
    int value = 0;
    goto *labels[*code++];
inc: value++; goto *labels[*code++];
dec: value--; goto *labels[*code++];
twice: value *= 2; goto *labels[*code++];
show: printf("%d\n", value); goto *labels[*code++];
skip: code++; goto *labels[*code++];
stop: return value;
}
int main(void) {
    printf("%d\n", interpret((const unsigned char *)"\1\1\3\4\2\4\5\1\3\3\4\0"));
    return interpret((const unsigned char *)"\0");
}
