// Assembly that no unwind table knows has no twins, and works with those of what it calls and is
// called by: loops over vectors, conventions among themselves, jumps in place of returns, padding
// in between, jumps by tables, code that is jumped into, reads itself, runs on, is short, or none.
//# skip: stripped: nothing names such functions there
//# twins: main keeps counts
//# refused: sums_ints no_unwind_entry
//# refused: asks_by_flags no_unwind_entry
//# refused: widens no_unwind_entry
//# refused: passes_on no_unwind_entry
//# refused: by_computed no_unwind_entry
//# refused: jumped_into no_unwind_entry
//# refused: no_code no_unwind_entry
#include <stdio.h>
#include <string.h>

__asm__(
    ".text\n"
    ".macro function name\n .p2align 4\n .globl \\name\n .type \\name, @function\n\\name:\n.endm\n"
    ".macro done name\n .size \\name, . - \\name\n.endm\n"

    // Sixteen bytes a turn; the vectors it uses hold what they hold before.
    "function sums_ints\n pxor %xmm12, %xmm12\n test %rsi, %rsi\n jz 2f\n"
    "1: movdqu (%rdi), %xmm11\n paddd %xmm11, %xmm12\n add $16, %rdi\n dec %rsi\n jnz 1b\n"
    "2: pshufd $0x4e, %xmm12, %xmm11\n paddd %xmm11, %xmm12\n pshufd $0xb1, %xmm12, %xmm11\n paddd %xmm11, %xmm12\n"
    " movd %xmm12, %eax\n ret\n done sums_ints\n"

    // Its argument in r11 and xmm9, its result in the carry; it has no name and keeps what it does
    // not write.
    " .skip 96, 0xcc\nleaf_by_flags: movq %xmm9, %rdx\n cmp %r11, %rdx\n ret\n"
    "function asks_by_flags\n mov %rdi, %r11\n movq %rsi, %xmm9\n movq %rdi, %xmm10\n mov $7, %r10d\n"
    " call leaf_by_flags\n sbb %rax, %rax\n add %r10, %rax\n movq %xmm10, %rdx\n add %rdx, %rax\n ret\n done asks_by_flags\n"

    "function widens\n movq %rdi, %xmm3\n jmp 1f\n nopl 0(%rax)\n nop\n"
    "1: punpcklbw %xmm3, %xmm4\n psraw $8, %xmm4\n movdqu %xmm4, (%rsi)\n mov $8, %eax\n ret\n done widens\n"

    "function passes_on\n lea 5(%rdi), %rdi\n stc\n movq %rdi, %xmm13\n jmp counts\n done passes_on\n"

    // Where it goes, its caller says: so much behind its begin.
    " .p2align 6\nfunction by_computed\n test %rdi, %rdi\n js 1f\n cmp $9, %rdi\n ja 2f\n lea 32(%rsi,%rdi,8), %rdx\n jmp *%rdx\n .p2align 5\n"
    "1: mov $11, %eax\n ret\n .p2align 3\n2: mov $22, %eax\n ret\n done by_computed\n"

    "function jumped_into\n mov $3, %esi\n"
    "middle: lea (%rdi,%rsi), %rax\n ret\n done jumped_into\n"
    "function into_middle\n mov $40, %esi\n jmp middle\n done into_middle\n"

    "function saver\n push %rbx\n mov %rdi, %rbx\n lea 1(%rbx), %rax\n pop %rbx\n ret\n done saver\n"
    "function calls_saver\n call saver\n inc %rax\n ret\n done calls_saver\n"

    "function runs_on\n lea 100(%rdi), %rdi\n nop\n done runs_on\n"
    "1: lea 1(%rdi), %rax\n ret\n"

    "function reads_itself\n lea reads_itself(%rip), %rdx\n movzbl (%rdx), %eax\n ret\n done reads_itself\n"
    "function too_short\n mov %edi, %eax\n ret\n done too_short\n"
    "function no_code\n .byte 0x55, 0x48, 0x89, 0xe5, 0x90, 6, 6, 6\n done no_code\n");

int sums_ints(const int *, long quads), widens(long eight, short *to);
long asks_by_flags(long, long), passes_on(long), by_computed(long, long), jumped_into(long), into_middle(long), calls_saver(long);
long runs_on(long), too_short(int);
int reads_itself(void);
extern const unsigned char no_code[];
__attribute__((noinline)) long counts(long x) { return x * 3; }

__attribute__((noinline)) double keeps(double a, const int *from, long quads, int *sum) {
    double b = a * 1.5;
    *sum = sums_ints(from, quads);
    return a + b;
}

int main(void) {
    int many[40], sum;
    for (int i = 0; i < 40; i++) many[i] = i * i - 7 * i;
    double kept = keeps(3.0, many, 10, &sum);
    printf("%d %d %g\n", sum, sums_ints(many, 0), kept);
    printf("%ld %ld\n", asks_by_flags(4, 5), asks_by_flags(5, 4));
    long (*volatile pointer)(long) = passes_on;
    printf("%ld %ld\n", passes_on(7), pointer(8));
    short wide[8];
    long bytes;
    memcpy(&bytes, "\x01\xff\x02\xfe\x03\xfd\x04\xfc", 8);
    int count = widens(bytes, wide);
    for (int i = 0; i < count; i++) printf("%d ", wide[i]);
    printf("\n%ld %ld %ld %ld\n", by_computed(0, (long)by_computed), by_computed(1, (long)by_computed), jumped_into(1), into_middle(2));
    printf("%ld %ld %ld\n", calls_saver(5), runs_on(6), too_short(9));
    printf("%d %x\n", reads_itself() != 0, no_code[0]);
    return sum == 0;
}
