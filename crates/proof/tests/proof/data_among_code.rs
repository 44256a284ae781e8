//! Constants in an executable segment, as older linkers place them: bytes that would be a branch
//! into an entry if they were code.

use gleaner_proof::{Refusal, Rule, check};
use std::process::Command;

/// A program with bytes that would be jumps to the third byte of `main`, in the section named;
/// many, for a sweep may need some to fall into step.
fn program(section: &str) -> (Vec<u8>, Vec<u8>) {
    of(&format!(
        "__asm__(\".section {section}; .rept 20; .byte 0xe9; .long main + 2 - (. + 4); .endr; .text\");\n\
         int main(int argc, char **argv) {{ volatile int many[8]; many[argc] = 1; return many[argc] - 1; }}\n"
    ))
}

/// A program linked with constants in the segment of its code, and what it becomes with twins.
fn of(text: &str) -> (Vec<u8>, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, to) = (folder.path().join("p.c"), folder.path().join("p"));
    std::fs::write(&source, text).expect("a source");
    let done = Command::new("gcc")
        .args(["-O1", "-fcf-protection=none", "-Wl,-z,noseparate-code"])
        .arg(&source)
        .arg("-o")
        .arg(&to)
        .status();
    assert!(done.is_ok_and(|status| status.success()), "a compiler");
    let original = std::fs::read(to).expect("what was compiled");
    let rewritten = twin::rewrite(&original, None, twin::Mode::Identity).expect("it can be rewritten");
    (original, rewritten.bytes)
}

/// Where `main` is patched, if it is.
fn patched(original: &[u8], rewritten: &[u8]) -> usize {
    original[64 + 56 * 20..].iter().zip(&rewritten[64 + 56 * 20..]).filter(|(old, new)| old != new).count()
}

#[test]
fn constants_do_not_branch() {
    let (original, rewritten) = program(".rodata");
    assert!(check(&original, &rewritten).is_ok());
    let (other, other_rewritten) = program(".text.aside,\\\"ax\\\",@progbits");
    assert!(check(&other, &other_rewritten).is_ok());
    let (among_constants, among_code) = (patched(&original, &rewritten), patched(&other, &other_rewritten));
    assert!(
        among_constants > among_code,
        "{among_constants} bytes changed, {among_code} where it may be code"
    );
}

/// The same bytes, were the section one of code when the checker looks, and not when the rewriter
/// did.
#[test]
fn code_does() {
    let (mut original, mut rewritten) = program(".rodata");
    let image = image::Image::parse(&original).expect("a sound file");
    let index = image.sections().iter().position(|section| section.name == b".rodata").expect("constants");
    let at = image.header().section_headers.0 as usize + 64 * index + 8;
    let moved = image::Image::parse(&rewritten).expect("a sound file");
    let moved_at = moved.header().section_headers.0 as usize + 64 * index + 8;
    original[at] |= 4;
    rewritten[at] |= 4;
    rewritten[moved_at] |= 4;
    let Err(Refusal::Wrong { violations, .. }) = check(&original, &rewritten) else { panic!("accepted") };
    assert!(violations.iter().any(|found| found.rule == Rule::Entry), "{violations:?}");
}

/// A function that continues among constants is left alone; the rest has twins.
#[test]
fn a_function_that_leads_into_data_has_no_twin() {
    for last in ["jmp there", "call there; ret", "nop"] {
        let (original, rewritten) = of(&format!(
            "__asm__(\".section .rodata; there: ret; .section .fini.last,\\\"ax\\\"; .type astray,@function; astray: .cfi_startproc; \\
             test %edi, %edi; jz 1f; ret; 1: {last}; .cfi_endproc; .text\");\n\
             int astray(int); int main(int argc, char **argv) {{ return argc > 9 ? astray(argc) : 0; }}\n"
        ));
        if let Err(refusal) = check(&original, &rewritten) {
            panic!("{last}: {refusal}");
        }
    }
}

/// A table between instructions, as of Haskell's compiler, whose last byte makes an instruction
/// with the first ones of the code behind it: what would follow is a branch into an entry, though
/// no instruction begins there.
#[test]
fn a_table_before_code_hides_no_instruction() {
    let (original, rewritten) = of(
        "__asm__(\".text; .globl f; .type f,@function; f: test %edi, %edi; jne 1f; ret; .byte 0, 0, 5; \
         1: .byte 0x48, 0xc7, 0x45, 0xf0, 0xe0; .byte 2f + 2 - (. + 1); .byte 0, 0; ret; .size f, . - f; \
         .globl g; .type g,@function; g: 2: .cfi_startproc; mov %edi, %eax; add $1, %eax; ret; .cfi_endproc; .size g, . - g\");\n\
         int g(int); int main(int argc, char **argv) { return g(argc) - 2; }\n",
    );
    let image = image::Image::parse(&rewritten).expect("a sound file");
    let symbols = image::elf::symbols::Symbols::of(&image, None);
    let entry = symbols.all().iter().find(|symbol| symbol.name == b"g").expect("its symbol");
    assert_eq!(image.bytes_at(entry.address, 1), Some(&[0xe9][..]), "the entry is patched");
    if let Err(refusal) = check(&original, &rewritten) {
        panic!("{refusal}");
    }
}
