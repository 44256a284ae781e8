// Computed goto over distances between labels, as programs do that want no relocations: the address
// is a sum.
//# twins: interpret
#include <stdio.h>

__attribute__((noinline)) long interpret(const unsigned char *code) {
    static const int distance[] = {&&stop - &&stop, &&add - &&stop, &&mul - &&stop, &&neg - &&stop, &&show - &&stop};
    long value = 1;
    goto *(&&stop + distance[*code++]);
add: value += *code++; goto *(&&stop + distance[*code++]);
mul: value *= *code++; goto *(&&stop + distance[*code++]);
neg: value = -value; goto *(&&stop + distance[*code++]);
show: printf("%ld\n", value); goto *(&&stop + distance[*code++]);
stop: return value;
}
int main(void) {
    printf("%ld\n", interpret((const unsigned char *)"\1\5\2\7\4\3\1\3\4\2\2\0"));
}
