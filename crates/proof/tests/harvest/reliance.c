// Functions whose yields may be cheap because of what their callers do not look for. Behind each
// marker's instruction the test puts another one, in original and twin alike, and then a caller
// does look.
#include <stdio.h>
#include <stdlib.h>

#define FUNCTION(name) ".p2align 4\n.type " name ", @function\n" name ": .cfi_startproc\n"
#define END(name) ".cfi_endproc\n.size " name ", .-" name "\n"
#define MARK(number) "movl $" number ", %r9d\n"
// Five bytes for the jump to the twin.
#define PADDING "nop\nnop\nnop\nnop\nnop\n"
// A marker that writes flags alone.
#define SIGN(number) "testl $" number ", %edx\n"
asm(".text\n"
    // What a caller may keep in a register that the function does not write.
    FUNCTION("leaf") "movq (%rdi), %rax\nleaq 1(%rax), %rax\nret\n" END("leaf")
    FUNCTION("keeps") "subq $8, %rsp\n.cfi_adjust_cfa_offset 8\ncall leaf\nmovl %eax, %ecx\n" MARK("0x5a5a0001")
    "movl %ecx, %eax\naddq $8, %rsp\n.cfi_adjust_cfa_offset -8\nret\n" END("keeps")
    // The result of a function that nobody else calls.
    FUNCTION("silent") "movq (%rdi), %rdx\nmovq %rdx, 8(%rdi)\nret\n" END("silent")
    FUNCTION("ignores") "subq $8, %rsp\n.cfi_adjust_cfa_offset 8\ncall silent\nmovl %r12d, %eax\n" MARK("0x5a5a0002")
    "addq $8, %rsp\n.cfi_adjust_cfa_offset -8\nret\n" END("ignores")
    // What a call by the ABI leaves behind, and what the next one is passed.
    FUNCTION("garbage") "pushq %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset rbx, -16\nmovq %rdi, %rbx\ncall strlen@PLT\n"
    "movl %eax, %eax\n" MARK("0x5a5a0004")
    "movq (%rbx), %rdi\ncall system@PLT\npopq %rbx\n.cfi_adjust_cfa_offset -8\nret\n" END("garbage")
    // What a function is passed whose type is known.
    FUNCTION("typed") "subq $8, %rsp\n.cfi_adjust_cfa_offset 8\nmovq (%rdi), %rdi\ncall strdup@PLT\n"
    "addq $8, %rsp\n.cfi_adjust_cfa_offset -8\nret\n" END("typed")
    // Code that no unwind table knows.
    ".p2align 4\nunrelated: movl $0x51515151, %eax\nret\n"
    // Calls by pointers.
    FUNCTION("pointed") "movl %edx, %ecx\nmovq (%rdi), %rax\nleaq 2(%rax), %rax\nret\n" END("pointed")
    FUNCTION("points") "subq $8, %rsp\n.cfi_adjust_cfa_offset 8\ncall *%rsi\nmovl %eax, %r11d\n" MARK("0x5a5a0007")
    "movl %r11d, %eax\naddq $8, %rsp\n.cfi_adjust_cfa_offset -8\nret\n" END("points")
    // A function that jumps in place of returning.
    FUNCTION("last") "movq (%rdi), %rax\nleaq 3(%rax), %rax\nret\n" END("last")
    FUNCTION("passes_on") "incl %edx\njmp last\n" END("passes_on")
    FUNCTION("relies") "subq $8, %rsp\n.cfi_adjust_cfa_offset 8\ncall passes_on\nmovl %eax, %ecx\n" MARK("0x5a5a0008")
    "movl %ecx, %eax\naddq $8, %rsp\n.cfi_adjust_cfa_offset -8\nret\n" END("relies")
    // A function that jumps to a pointer in place of returning.
    FUNCTION("trampoline") "incl %edx\nnop\nnop\nnop\njmp *%rsi\n" END("trampoline")
    FUNCTION("bounces") "subq $8, %rsp\n.cfi_adjust_cfa_offset 8\ncall trampoline\nmovl %eax, %r10d\n" MARK("0x5a5a0009")
    "movl %r10d, %eax\naddq $8, %rsp\n.cfi_adjust_cfa_offset -8\nret\n" END("bounces")
    // A function that passes nothing on, and nothing back, by any convention.
    FUNCTION("abides") "pushq %r12\n.cfi_adjust_cfa_offset 8\n.cfi_offset r12, -16\nmovl %edx, %r12d\nmovl %edx, %eax\n"
    "movd %edx, %xmm9\nmovd %xmm9, %eax\nmovq (%rdi), %rax\n.byte 0x8b, 0x16\n" MARK("0x5a5a000a")
    "movl %eax, %r12d\nmovl %r12d, %eax\nmovd %eax, %xmm9\nmovd %xmm9, %eax\n"
    "popq %r12\n.cfi_adjust_cfa_offset -8\nret\n" END("abides")
    FUNCTION("gives") "movl $1, %eax\nmovl %edx, %esi\nmovl %esi, %ecx\n" MARK("0x5a5a000b")
    "movq (%rdi), %rax\nleaq 4(%rax), %rax\nret\n" END("gives")
    // They keep nothing by any convention, which one instruction each shows.
    FUNCTION("breaks") PADDING "movl %edx, %ecx\n" SIGN("0x5a5a000c") "movq (%rdi), %rax\nleaq 5(%rax), %rax\nret\n" END("breaks")
    FUNCTION("breaks_vectors") PADDING "movd %edx, %xmm6\n" SIGN("0x5a5a000d")
    "movq (%rdi), %rax\nleaq 6(%rax), %rax\nret\n" END("breaks_vectors")
    FUNCTION("takes_rdi") PADDING "movl %edi, %ecx\n" SIGN("0x5a5a000e") "movq (%rdx), %rax\nleaq 7(%rax), %rax\nret\n" END("takes_rdi")
    FUNCTION("takes_no_rax") PADDING "movl %edx, %ecx\n" SIGN("0x5a5a000f") "movq (%rdi), %rax\nleaq 8(%rax), %rax\nret\n" END("takes_no_rax")
    FUNCTION("part_of_it") PADDING "movl %edx, %ecx\n" SIGN("0x5a5a0010") "movq (%rdi), %rax\nret\n" END("part_of_it")
    FUNCTION("calls_it") "subq $8, %rsp\n.cfi_adjust_cfa_offset 8\ncall part_of_it\n"
    "addq $8, %rsp\n.cfi_adjust_cfa_offset -8\nret\n" END("calls_it")
    FUNCTION("goes_on") PADDING "movl %edx, %ecx\n" SIGN("0x5a5a0011") "movq (%rdi), %rdx\nmovq %rdx, %rax\njmp strdup@PLT\n" END("goes_on")
    FUNCTION("goes_out") PADDING "subq $8, %rsp\n.cfi_adjust_cfa_offset 8\nmovl %edx, %ecx\n" SIGN("0x5a5a0012") "movq (%rdi), %rax\n"
    "call labs@PLT\naddq $8, %rsp\n.cfi_adjust_cfa_offset -8\nret\n" END("goes_out")
    FUNCTION("hands_back") PADDING "pushq %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset rbx, -16\nmovq %rdi, %rbx\nmovl %edx, %ecx\n"
    SIGN("0x5a5a0013") "call *%rsi\naddl (%rbx), %eax\npopq %rbx\n.cfi_adjust_cfa_offset -8\nret\n" END("hands_back")
    ".data\n.p2align 3\n.quad gives\n.quad pointed\n.quad breaks\n.quad breaks_vectors\n.quad takes_rdi\n.quad takes_no_rax\n"
    ".quad calls_it\n.quad goes_on\n.quad goes_out\n.quad hands_back\nspare: .quad 0x5b5b5b5b5c5c5c5c\n.long 0x5d5d5d5d\n.text\n");
long keeps(void *), ignores(void *), garbage(void *), typed(void *), points(void *, void *), relies(void *);
long bounces(void *, void *), unrelated(void), abides(void *, void *), gives(void *);
extern long pointed_by asm("spare");

int main(int count, char **arguments) {
    long sum = keeps(arguments) + ignores(arguments) + garbage(arguments) + typed(arguments);
    sum += points(arguments, &count) + relies(arguments) + bounces(arguments, &count) + unrelated() + pointed_by;
    sum += abides(arguments, &count) + gives(arguments);
    printf("%ld\n", sum);
    return 0;
}
