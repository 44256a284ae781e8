// A register that nobody passes anything in, written ahead of a way that calls through a linkage
// stub and of one that returns: nobody knows that the call alone reads it. Compilers do so where
// they clear what a stack protector left in r11.
#include <stdio.h>

__asm__(".text\n .p2align 4\n .globl clears_it\n .type clears_it, @function\n"
        "clears_it: .cfi_startproc\n mov $0, %r11d\n movslq %ecx, %rcx\n test %esi, %esi\n jne 2f\n nop\n ret\n"
        "2: sub $8, %rsp\n .cfi_adjust_cfa_offset 8\n call puts@PLT\n add $8, %rsp\n .cfi_adjust_cfa_offset -8\n ret\n .cfi_endproc\n .size clears_it, .-clears_it\n");

void clears_it(const char *, int);

int main(void) {
    void (*volatile by_pointer)(const char *, int) = clears_it;
    by_pointer("not said", 0);
    by_pointer("said", 1);
    return 0;
}
