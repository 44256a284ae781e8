# A program as Go's linker leaves one (of version 1.26), as far as anybody looks who does not run it.
        .text
        .p2align 6
text:
main:   cmp 16(%r14), %rsp
        jbe grow
        push %rbp
pushed: mov %rsp, %rbp
        sub $16, %rsp
framed: movups %xmm15, (%rsp)
        # More than a part of a bucket has, so that leaf's twin begins in another one.
        .rept 70
        lea 3(%rax), %rax
        .endr
in_call:
        call leaf
behind: add $16, %rsp
added:  pop %rbp
popped: ret
        # Where a panic that was recovered from goes on: no branch leads here.
defer:  call leaf
        nop
        add $16, %rsp
added2: pop %rbp
popped2:
        ret
grow:   mov %rax, 8(%rsp)
        call assembly
        mov 8(%rsp), %rax
        jmp main
end_main:
        .p2align 5, 0xcc
leaf:   test %rax, %rax
        je 1f
        lea 1(%rax,%rbx), %rax
        ret
1:      movsd (%rbx), %xmm3
        movsd %xmm3, (%rcx)
        xor %eax, %eax
        ret
end_leaf:
        .p2align 5, 0xcc
assembly:
        mov %rsp, %rbx
        mov %rbx, %rsp
load:   mov last(%rip), %rcx
        ret
end_assembly:
        .p2align 5, 0xcc
free:
        .globl _start
_start: jmp main

        .section .gopclntab, "a"
        .p2align 5
header: .long 0xfffffff1
        .byte 0, 0, 1, 8
        .quad 3, 1, 0
        .quad names - header, units - header, files - header, pctab - header, functions - header
names:  .byte 0
name_main:     .asciz "main.main"
name_leaf:     .asciz "main.leaf"
name_assembly: .asciz "runtime.assembly"
name_inlined:  .asciz "main.inlined"
end_names:
        .p2align 2
units:  .long 0
end_units:
files:  .asciz "main.go"
end_files:

# How the value changes, from -1 at first, as a zigzag, and for how many bytes it holds.
        .macro run change, from, to
        .byte (\change << 1) ^ (\change < 0)
        .uleb128 \to - \from
        .endm
pctab:  .byte 0
main_frames:
        run 1, main, pushed
        run 8, pushed, framed
        run 16, framed, added
        run -16, added, popped
        run -8, popped, defer
        run 24, defer, added2
        run -16, added2, popped2
        run -8, popped2, end_main
        .byte 0
main_files:
        run 1, main, end_main
        .byte 0
main_lines:
        run 11, main, in_call
        run 1, in_call, defer
        run 1, defer, end_main
        .byte 0
main_unsafe:
        run -1, main, framed
        run 1, framed, grow
        run -1, grow, end_main
        .byte 0
main_maps:
        run 0, main, in_call
        run 1, in_call, behind
        run -1, behind, defer
        run 2, defer, end_main
        .byte 0
main_inlined:
        run 0, main, in_call
        run 1, in_call, behind
        run -1, behind, end_main
        .byte 0
leaf_all:
        run 1, leaf, end_leaf
        .byte 0
assembly_all:
        run 1, assembly, end_assembly
        .byte 0
end_pctab:

        .p2align 3
functions:
index:  .long main - text, record_main - functions
        .long leaf - text, record_leaf - functions
        .long assembly - text, record_assembly - functions
        .long end_assembly - text, 0
record_main:
        .long main - text, name_main - names, 8, defer - main
        .long main_frames - pctab, main_files - pctab, main_lines - pctab, 4, 0, 9
        .byte 0, 0, 0, 4
        .long main_unsafe - pctab, main_maps - pctab, main_inlined - pctab, 0
        .long 0, 8, 0xffffffff, tree - gofunc
record_leaf:
        .long leaf - text, name_leaf - names, 8, 0
        .long leaf_all - pctab, leaf_all - pctab, leaf_all - pctab, 0, 0, 20
        .byte 0, 0, 0, 2
        .long 0, 8
record_assembly:
        .long assembly - text, name_assembly - names, 0, 0
        .long assembly_all - pctab, assembly_all - pctab, assembly_all - pctab, 0, 0, 30
flags:  .byte 0, 6, 0, 2
        .long 0, 8
end_functions:
        .p2align 2
find:   .long 0
        .zero 16

        .section .rodata, "a"
        .p2align 3
gofunc: .long 1, 0
        .long 2, 1
tree:   .long 0, name_inlined - names, framed - main, 5
        .quad 0, 0

        .section .go.buildinfo, "aw"
        .p2align 4
        .ascii "\377 Go buildinf:"
        .byte 8, 2
        .zero 16
        .byte 8
        .ascii "go1.26.8"

# What is compared with a checksum: of code, constants and data.
        .section .go.fipsinfo, "aw"
        .p2align 3
fips:   .ascii "\377 Go fipsinfo \377\0"
        .zero 32
        .quad fips
leaves: .quad leaf, end_leaf, tree, tree + 1, index, index + 8, data, data + 1

        .macro slice from, size
        .quad \from, \size, \size
        .endm
        .section .go.module, "aw"
        .p2align 5
module: .quad header
        slice names, end_names-names
        slice units, 1
        slice files, end_files-files
        slice pctab, end_pctab-pctab
        slice functions, end_functions-functions
        slice index, 4
        .quad find, text, end_assembly, text, end_assembly
        .quad data, data_end, data, data_end, data, data, data, data
        .quad 0, 0, data_end, 0, 0
        .quad gofunc, gofunc, gofunc, gofunc, end_functions
        .zero 4 * 24 + 16 + 24 + 24 + 16 + 24
        .byte 1, 0
        .zero 6
        .zero 16 + 16 + 8
next:   .quad 0
        .data
data:   .quad 5
last:   .quad module
data_end:
