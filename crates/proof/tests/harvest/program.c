// Something of everything that harvest twins have to care for. It is rewritten and checked, never
// run.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__thread long local;
__thread int locals[16];
long global;
double numbers[64];

struct node {
    struct node *next, *left, *right;
    long value;
    long (*visit)(struct node *);
};

__attribute__((noinline)) long walk(struct node *at) {
    long sum = 0;
    for (; at; at = at->next) sum += at->value;
    return sum;
}
__attribute__((noinline)) long depth(struct node *at) {
    if (!at) return 0;
    long left = depth(at->left), right = depth(at->right);
    return 1 + (left > right ? left : right);
}
__attribute__((noinline)) long visits(struct node *at) {
    long sum = 0;
    for (; at; at = at->next) sum += at->visit(at);
    return sum;
}
__attribute__((noinline)) double scale(double *at, double by, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) sum += at[i] * by + at[i + 1];
    return sum;
}
__attribute__((noinline)) long thread_locals(int at) {
    local += at;
    locals[at & 15] += 1;
    return local + locals[(at + 3) & 15];
}
__attribute__((noinline)) int choose(int what, int *to) {
    switch (what) {
    case 0: return to[3];
    case 1: return to[1] * 7;
    case 2: return to[what] + to[5];
    case 3: *to = 5; return 11;
    case 4: return to[8] - 4;
    case 5: return to[2] ^ 77;
    default: return -1;
    }
}
/* Flags that live over a load. */
__attribute__((noinline)) long flags(long *at, long count) {
    long sum = 0;
    asm volatile("xor %%ecx, %%ecx\n"
                 "1: adc (%1,%%rcx,8), %0\n"
                 "lea 1(%%rcx), %%rcx\n"
                 "dec %2\n"
                 "jnz 1b\n"
                 : "+r"(sum), "+r"(at), "+r"(count)::"rcx", "memory", "cc");
    return sum;
}
/* Mask registers that live over a load. */
__attribute__((noinline)) long masks(long *at) {
    long first, second, third;
    asm volatile("kmovq %3, %%k1\n"
                 "kmovq %3, %%k2\n"
                 "mov (%3), %2\n"
                 "kmovq %%k1, %0\n"
                 "kmovq %%k2, %1\n"
                 : "=&r"(first), "=&r"(second), "=&r"(third)
                 : "r"(at)
                 : "memory");
    return first + second + third;
}
__attribute__((noinline)) long kernel(long number) {
    long result;
    asm volatile("syscall" : "=a"(result) : "a"(number) : "rcx", "r11", "memory");
    return result;
}
__attribute__((noinline)) void modes(unsigned *csr) { asm volatile("ldmxcsr %0" ::"m"(*csr)); }
__attribute__((noinline)) void control(unsigned short *word) { asm volatile("fldcw %0" ::"m"(*word)); }
__attribute__((noinline)) long segment(void) {
    long result;
    asm volatile("mov %%gs:0x100, %0" : "=r"(result));
    return result;
}
__attribute__((noinline)) unsigned processor(void) {
    unsigned long result;
    asm volatile("rdpid %0" : "=r"(result));
    return result;
}
__attribute__((noinline)) unsigned long base(void) {
    unsigned long result;
    asm volatile("rdfsbase %0" : "=r"(result));
    return result;
}
/* No way round the x87. */
__attribute__((noinline)) long double extended(long double *at, int count) {
    long double sum = 0;
    for (int i = 0; i < count; i++) sum += at[i];
    return sum;
}
__attribute__((noinline, noreturn)) void give_up(struct node *at) {
    printf("%ld\n", at->value);
    exit(3);
}
__attribute__((noinline)) long careful(struct node *at) {
    if (at->value < 0) give_up(at);
    return at->value + global;
}
/* A loop, a recursion and a long way without any loads. */
asm(".text\n.type plain, @function\nplain: .cfi_startproc\n"
    "movl $0x1357913, %eax\n"
    ".rept 600\nleal 1(%rax), %eax\n.endr\n"
    "1: imull $0x7654321, %eax, %eax\ndecl %edi\njnz 1b\n"
    "ret\n.cfi_endproc\n.size plain, .-plain\n"
    ".type again, @function\nagain: .cfi_startproc\n"
    "cmpl $0x2468024, %edi\nja 1f\n"
    "subq $8, %rsp\n.cfi_adjust_cfa_offset 8\nincl %edi\ncall again\n"
    "addq $8, %rsp\n.cfi_adjust_cfa_offset -8\n1: ret\n.cfi_endproc\n.size again, .-again\n");
long plain(long), again(long);
__attribute__((noinline)) long tail(struct node *at) { return at->visit(at); }
int main(int count, char **arguments) {
    struct node *first = calloc(64, sizeof *first);
    for (int i = 0; i < 63; i++) {
        first[i].next = &first[i + 1];
        first[i].visit = careful;
        first[i].value = strlen(arguments[0]) + i;
    }
    long double wide[4] = {1, 2, 3, 4};
    long sum = walk(first) + depth(first) + visits(first) + thread_locals(count) + choose(count, (int *)first);
    sum += masks(&first->value) + flags(&first->value, 3) + kernel(39) + scale(numbers, count, 63) + extended(wide, 4);
    unsigned csr = 0x1f80;
    unsigned short word = 0x37f;
    sum += plain(count) + again(count) + tail(first);
    modes(&csr);
    control(&word);
    if (count > 100) sum += segment() + processor() + base();
    printf("%ld\n", sum);
    return 0;
}
