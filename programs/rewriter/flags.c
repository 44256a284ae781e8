// Every arithmetic flag, live over other instructions and branches, and saved and restored whole.
//# twins: each over_branches saved
#include <stdio.h>

__attribute__((noinline)) unsigned each(unsigned long a, unsigned long b) {
    unsigned char c, o, s, z, p, af;
    __asm__ volatile("cmp %7, %6; mov $0, %%eax; lea 1(%%rax), %%rcx; setc %0; seto %1; sets %2; setz %3; setp %4; lahf; shr $4, %%ah;"
                     "and $1, %%ah; mov %%ah, %5"
                     : "=m"(c), "=m"(o), "=m"(s), "=m"(z), "=m"(p), "=m"(af) : "r"(a), "r"(b) : "rax", "rcx", "cc");
    return c | o << 1 | s << 2 | z << 3 | p << 4 | af << 5;
}
__attribute__((noinline)) int over_branches(long a, long b) {
    int result;
    __asm__ volatile("cmp %2, %1; mov $0, %0; jl 1f; mov $10, %0; je 2f; mov $20, %0; jmp 2f; 1: mov $30, %0; jb 2f; mov $40, %0;"
                     "2: jno 3f; lea 1(%q0), %0; 3:"
                     : "=&r"(result) : "r"(a), "r"(b) : "cc");
    return result;
}
__attribute__((noinline)) unsigned long saved(unsigned long a, unsigned long b) {
    unsigned long flags;
    __asm__ volatile("lea -128(%%rsp), %%rsp; add %2, %1; pushfq; xor %2, %2; popfq; sbb %0, %0; pushfq; pop %1; lea 128(%%rsp), %%rsp"
                     : "=r"(flags), "+r"(a), "+r"(b) : : "cc", "memory");
    return (flags & 0xff) * 4096 + (a & 0x8d5);
}
int main(void) {
    unsigned long values[] = {0, 1, 15, 16, 0x7fffffffffffffff, 0x8000000000000000, ~0ul, 300};
    for (int i = 0; i < 8; i++) {
        for (int k = 0; k < 8; k++)
            printf("%u %d %lx  ", each(values[i], values[k]), over_branches((long)values[i], (long)values[k]), saved(values[i], values[k]));
        puts("");
    }
}
