// Assembly in no unwind table that its program copies and runs elsewhere, as V8 does with its
// builtins: its functions are named by local symbols, call each other, and nobody else knows where
// each of them is but by how far it is from the first one.
//# skip: stripped: nothing names such functions there
//# refused: first no_unwind_entry
//# refused: second no_unwind_entry
//# refused: third no_unwind_entry
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

__asm__(
    ".text\n .p2align 6\n"
    "blob:\n"
    ".type first, @function\nfirst: lea 3(%rdi,%rdi), %rax\n add $1, %rax\n imul $7, %rax, %rax\n ret\n .size first, . - first\n"
    " .p2align 5\n"
    ".type second, @function\nsecond: xor %eax, %eax\n1: add %rdi, %rax\n dec %rdi\n jnz 1b\n ret\n .size second, . - second\n"
    " .p2align 5\n"
    ".type third, @function\nthird: lea 5(%rdi), %rdi\n add $2, %rdi\n jmp second\n .size third, . - third\n"
    " .p2align 5\n"
    "blob_end:\n"
    ".section .rodata\n .p2align 3\noffsets: .quad 0, second - first, third - first\n.previous\n");

extern const unsigned char blob[] __attribute__((visibility("hidden"))), blob_end[] __attribute__((visibility("hidden")));
extern const long offsets[3] __attribute__((visibility("hidden")));

int main(void) {
    size_t size = blob_end - blob;
    unsigned char *copy = mmap(0, 1 << 20, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return 1;
    memcpy(copy + 4096, blob, size);
    for (int i = 0; i < 3; i++)
        for (long x = 1; x < 4; x++)
            printf("%ld %ld\n", ((long (*)(long))(void *)(blob + offsets[i]))(x), ((long (*)(long))(void *)(copy + 4096 + offsets[i]))(x));
    return 0;
}
