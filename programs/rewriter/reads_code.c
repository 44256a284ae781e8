// Functions that are read as data, behind their first byte, by addresses in the instructions themselves: their entries stay as they are, for what is
// patched there would be read.
#include <stdio.h>

static __attribute__((noinline, noclone, used)) int read_inside(int x) {
    for (int i = 0; i < 3; i++)
        x = x * 7 + i;
    return x;
}

int main(void) {
    int sum = 0;
    for (int i = 1; i < 5; i++)
        sum += ((const volatile unsigned char *)(void *)read_inside)[i] & 0;
    unsigned char byte, wide[4];
    __asm__ volatile("movb read_inside+3(%%rip), %0" : "=q"(byte));
    __asm__ volatile("movl read_inside+1(%%rip), %%eax\n movl %%eax, %0" : "=m"(wide) : : "eax");
    __asm__ volatile("cmpb $0x90, read_inside+2(%%rip)" : : : "cc");
    const volatile unsigned char *code = (const volatile unsigned char *)(void *)read_inside;
    printf("%d %d %d %d\n", sum, read_inside(3), byte == code[3], wide[0] == code[1] && wide[3] == code[4]);
    return 0;
}
