// Data among code, whose last byte begins an instruction that goes on into the function behind it:
// a decoder that reads on without a break sees a branch there, into the entry of the next function.
// Names say where code begins again.
//# twins: described
//# skip: stripped: nothing names the function there
#include <stdio.h>

__asm__(".text\n"
        ".balign 64\n"
        ".globl ahead\n"
        ".type ahead, @function\n"
        "ahead: .cfi_startproc\n"
        "    leal 1(%rdi), %eax\n"
        "    leal 1(%rax), %eax\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size ahead, . - ahead\n"
        "    .byte 0xb8\n"                       // mov eax, and four bytes of what follows
        ".globl undescribed\n"
        ".type undescribed, @function\n"
        "undescribed:\n"
        "    movl $0xeb000000, %eax\n"           // its last byte is a jump's first
        "    sbbb $0, %al\n"                     // 1c 00: so far it would go
        "    ret\n"
        ".size undescribed, . - undescribed\n"
        "    .fill undescribed + 32 - ., 1, 0xcc\n"
        ".globl described\n"
        ".type described, @function\n"
        "described: .cfi_startproc\n"
        "    movl (%rdi), %eax\n"
        "    imull $7, %eax, %eax\n"
        "    addl $3, %eax\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size described, . - described\n");

int ahead(int);
int undescribed(void);
int described(const int *);

int main(void) {
    int sum = 0;
    for (int i = 0; i < 10; i++)
        sum = described(&sum) + ahead(i);
    printf("%d %d\n", sum, undescribed() & 0xffff00);
    return 0;
}
