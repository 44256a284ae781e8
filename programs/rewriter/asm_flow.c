// Odd control flow in assembly: loop, jrcxz, a trap that is never reached, a jump table by hand,
// branches out of line.
//# twins: sum_by_loop count by_table
#include <stdio.h>

__attribute__((noinline)) long sum_by_loop(long n) {
    long result;
    __asm__("xor %0, %0\n1: test %1, %1\n je 3f\n add %1, %0\n dec %1\n jmp 1b\n2: ud2\n3:" : "=&r"(result), "+r"(n) : : "cc");
    return result;
}
__attribute__((noinline)) long count(long n) {
    long result = 0;
    __asm__("1: jrcxz 2f\n lea 3(%0), %0\n loop 1b\n2:" : "+r"(result), "+c"(n));
    return result;
}
__attribute__((noinline)) long loops_on_flags(const char *text, long n) {
    long at = 0;
    __asm__("1: cmpb $'.', (%1,%0)\n lea 1(%0), %0\n loopne 1b\n jne 2f\n neg %0\n2:" : "+r"(at), "+r"(text), "+c"(n) : : "cc", "memory");
    return at;
}
__attribute__((noinline)) long by_table(unsigned long i) {
    long result;
    __asm__("lea 9f(%%rip), %%rdx\n movslq (%%rdx,%1,4), %%rax\n add %%rdx, %%rax\n jmp *%%rax\n"
            ".pushsection .rodata\n .balign 4\n9: .long 1f-9b, 2f-9b, 3f-9b\n .popsection\n"
            "1: mov $111, %0\n jmp 4f\n2: mov $222, %0\n jmp 4f\n3: mov $333, %0\n4:"
            : "=r"(result) : "r"(i) : "rax", "rdx", "cc");
    return result;
}
int main(void) {
    printf("%ld %ld\n", sum_by_loop(100), count(50));
    printf("%ld %ld\n", loops_on_flags("one. two", 8), loops_on_flags("no end", 6));
    printf("%ld %ld %ld\n", by_table(0), by_table(1), by_table(2));
}
