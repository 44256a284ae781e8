//! Functions that leave by jumps into other ones.

use crate::assembled::assembled;
use gleaner_proof::check;
use std::process::Command;

/// A function that takes its stack pointer from memory, as those with arrays of variable length do,
/// and leaves by a `ret` and by a jump to another function: what a call by a pointer may have left
/// in a register is handed back either way.
const PROGRAM: &str = r#"
__asm__(".text; .globl f; .type f,@function; f: .cfi_startproc;"
        "push %rbp; .cfi_def_cfa_offset 16; .cfi_offset 6, -16;"
        "mov %rsp, %rbp; .cfi_def_cfa_register 6; push %rsp;"
        "test %edi, %edi; je 1f; call *%rsi; mov -8(%rbp), %rsp;"
        "leave; .cfi_remember_state; .cfi_def_cfa 7, 8; ret;"
        "1: .cfi_restore_state; mov %rdx, %r11; mov %r11, %rdi;"
        "leave; .cfi_def_cfa 7, 8; jmp g; .cfi_endproc; .size f, . - f;"
        ".type g,@function; g: .cfi_startproc; lea 1(%rdi), %eax; ret; .cfi_endproc; .size g, . - g");
int f(int, void (*)(void), long);
int main(int argc, char **argv) { return f(argc - 1, 0, -1); }
"#;

#[test]
fn both_ways_out_hand_back_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, to) = (folder.path().join("p.c"), folder.path().join("p"));
    std::fs::write(&source, PROGRAM).expect("a source");
    let done = Command::new("gcc").arg("-O1").arg(&source).arg("-o").arg(&to).status();
    assert!(done.is_ok_and(|status| status.success()), "a compiler");
    assert_poisoned(&std::fs::read(to).expect("what was compiled"));
}

fn assert_poisoned(original: &[u8]) {
    let mode = twin::Mode::Poison(twin::VectorWidth::Avx512);
    let rewritten = twin::rewrite(original, None, mode).expect("it can be rewritten").bytes;
    if let Err(refusal) = check(original, &rewritten) {
        panic!("{refusal}");
    }
}

/// A function's cold part has no twin, since it calls `setjmp`. The function goes into its middle,
/// where it does not come by itself, and from there back to where nothing else begins: half a carry
/// is computed there before anybody may read it.
const PART: &str = "
    .text
    .globl hot
    .type hot, @function
    hot: .cfi_startproc
    cmp %rsi, %rdi
    je 1f
    mov %rsi, %rdx
    jmp middle
    1: mov %rdi, %rax
    back: sub %rdi, %rax
    jmp *(%rdx)
    .cfi_endproc
    .size hot, . - hot
    .type part, @function
    part: .cfi_startproc
    call setjmp@PLT
    xor %eax, %eax
    ret
    middle: test %rsi, %rsi
    jle back
    cmp %rsi, %rdi
    jmp back
    .cfi_endproc
    .size part, . - part
";

#[test]
fn what_is_come_to_by_a_part_without_twin_is_followed() {
    assert_poisoned(&assembled(PART));
}
