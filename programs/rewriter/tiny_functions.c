// Functions shorter than the jump that leads to a twin, close together, some falling through into
// the next.
//# twins: caller
#include <stdio.h>

int one_byte(int x), two_bytes(int x), falls(int x), into(int x), four_bytes(int x), stays(int x);
#define FUNCTION(name, body) \
    " .globl " #name "\n .type " #name ", @function\n" #name ":\n .cfi_startproc\n" body "\n .cfi_endproc\n .size " #name ", .-" #name "\n"
__asm__(".text\n"
        FUNCTION(one_byte, " ret")
        FUNCTION(two_bytes, " rep ret")
        FUNCTION(falls, " lea 3(%rdi), %edi")
        FUNCTION(into, " lea (%rdi,%rdi), %eax\n ret")
        FUNCTION(four_bytes, " mov %edi, %eax\n cltd\n ret")
        FUNCTION(stays, " jmp into"));
__attribute__((noinline)) int caller(int x) { return falls(x) * 100 + into(x) * 10 + four_bytes(x) + stays(x); }
int main(void) {
    one_byte(0);
    two_bytes(0);
    for (int i = 0; i < 5; i++) printf("%d\n", caller(i));
}
