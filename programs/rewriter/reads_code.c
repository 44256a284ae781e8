// Functions that are read as data, at their begin, behind it and from ahead of it, by addresses in
// the instructions themselves: their entries stay as they are, for what is patched there would be
// read.
#include <stdio.h>

#define FUNCTION(name)                                                                  \
    __attribute__((noinline, noclone, used, aligned(32))) static int name(int x) {      \
        for (int i = 0; i < 3; i++)                                                     \
            x = x * 7 + i;                                                              \
        return x;                                                                       \
    }

FUNCTION(read_inside)
FUNCTION(read_first)
FUNCTION(read_from_ahead)
FUNCTION(read_absolutely)
FUNCTION(read_all)

// A jump is where no compiler begins these.
static int is_whole(int (*volatile function)(int)) {
    const volatile unsigned char *code = (const volatile unsigned char *)(void *)function;
    return code[0] != 0xe9;
}

int main(void) {
    int sum = 0;
    for (int i = 1; i < 5; i++)
        sum += ((const volatile unsigned char *)(void *)read_inside)[i] & 0;
    unsigned char byte, first, wide[4], ahead[8];
    static unsigned char all[64];
    __asm__ volatile("movb read_inside+3(%%rip), %0" : "=q"(byte));
    __asm__ volatile("movl read_inside+1(%%rip), %%eax\n movl %%eax, %0" : "=m"(wide) : : "eax");
    __asm__ volatile("cmpb $0x90, read_inside+2(%%rip)" : : : "cc");
    __asm__ volatile("movb read_first(%%rip), %0" : "=q"(first));
    __asm__ volatile("movq read_from_ahead-7(%%rip), %%rax\n movq %%rax, %0" : "=m"(ahead) : : "rax");
    __asm__ volatile("movdqu read_all-15(%%rip), %%xmm0\n movdqu %%xmm0, %0" : "=m"(all) : : "xmm0");
#ifndef __PIC__
    __asm__ volatile("cmpb $0x90, read_absolutely" : : : "cc");
    sum += !is_whole(read_absolutely);
#endif
    const volatile unsigned char *code = (const volatile unsigned char *)(void *)read_inside;
    printf("%d %d %d %d\n", sum, read_inside(3), byte == code[3], wide[0] == code[1] && wide[3] == code[4]);
    printf("%d %d %d\n", is_whole(read_first), is_whole(read_from_ahead), is_whole(read_all));
    printf("%d %d %d\n", first != 0xe9, ahead[7] != 0xe9, all[15] != 0xe9);
    printf("%d\n", read_first(1) + read_from_ahead(2) + read_absolutely(3) + read_all(4));
    return 0;
}
