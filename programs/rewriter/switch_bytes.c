// A switch over bytes inside a loop: the index is zero-extended from memory and stays within the
// table by its type.
//# twins: run
#include <stdio.h>

__attribute__((noinline)) int run(const unsigned char *text) {
    unsigned sum = 0;
    for (; *text; text++) {
        switch (*text) {
        case 'a': sum += 1; break;
        case 'b': sum *= 3; break;
        case 'c': sum ^= 0x55; break;
        case 'd': sum -= 7; break;
        case 'e': sum <<= 1; break;
        case 'f': sum = ~sum; break;
        case 'g': printf("%u ", sum); break;
        case 'h': sum += 17; break;
        default: sum++;
        }
    }
    return sum & 0xffff;
}
int main(void) {
    printf("%d\n", run((const unsigned char *)"abcdefghhgaaebbgcxyzg"));
    printf("%d\n", run((const unsigned char *)"\xff\xfeg\1\2gzzg"));
}
