// Dense switches of every kind a compiler makes tables of: signed and unsigned, offset, byte-sized, in loops, nested, with
// fall-through, and one whose cases share a table with a computed goto.
#include <stdio.h>

__attribute__((noinline)) int plain(int x) {
    switch (x) {
    case 0: return 10;
    case 1: return puts("one");
    case 2: return 77;
    case 3: puts("three");  // fall through
    case 4: return 44;
    case 5: return puts("five") + x;
    case 6: return -6;
    case 7: return x * x;
    default: return -1;
    }
}
__attribute__((noinline)) long offset(long x) {
    switch (x) {
    case -5: return puts("-5");
    case -4: return 3;
    case -3: return puts("-3");
    case -2: return 9;
    case -1: return puts("-1");
    case 0: return 1;
    case 1: return puts("1");
    default: return 1000 + x;
    }
}
__attribute__((noinline)) int bytes(const unsigned char *text) {
    int sum = 0;
    for (; *text; text++) {
        switch (*text) {
        case 'a': sum += 1; break;
        case 'b': sum *= 3; break;
        case 'c': sum ^= 0x55; break;
        case 'd': sum -= 7; break;
        case 'e': sum <<= 1; break;
        case 'f': sum = ~sum; break;
        case 'g': printf("%d ", sum); break;
        case 'h': sum += plain(sum & 7); break;
        default: sum++;
        }
    }
    return sum;
}
__attribute__((noinline)) int nested(unsigned a, unsigned b) {
    switch (a) {
    case 0: switch (b) { case 0: return 1; case 1: return puts("01"); case 2: return 5; case 3: return 8; case 4: return puts("04"); default: return 2; }
    case 1: return puts("1x");
    case 2: return 12;
    case 3: switch (b) { case 0: return puts("30"); case 1: return 31; case 2: return puts("32"); case 3: return 33; case 4: return 34; default: return 35; }
    case 4: return 13;
    default: return 14;
    }
}
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
    for (int i = -3; i < 10; i++) printf("%d %d\n", i, plain(i));
    for (long i = -8; i < 5; i++) printf("%ld %ld\n", i, offset(i));
    printf("%ld\n", offset(0x100000001L));
    printf("%d\n", bytes((const unsigned char *)"abcdefghhgaaebbgcxyzg"));
    for (unsigned a = 0; a < 6; a++)
        for (unsigned b = 0; b < 6; b++) printf("%d ", nested(a, b));
    puts("");
    printf("%d\n", interpret((const unsigned char *)"\1\1\3\4\2\4\5\1\3\3\4\0"));
}
