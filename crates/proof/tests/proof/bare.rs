//! Functions without frame descriptions: twins of such as are beyond doubt are accepted, and none
//! of what is not (R19); poison in what they do not overwrite is rejected (R7). Each wrong is made
//! of both files, for it lies in the code.

use gleaner_proof::{Refusal, Rule, check};
use std::process::Command;

const CODE: &str = r"
    .macro function name
    .p2align 4
    .globl \name
    .type \name, @function
    \name:
    .endm
    .text
    function whole
    nopl 0x11223344(%rax)
    mov 0x18(%rsp), %rax
    lea data(%rip), %rdx
    call leaf
    jmp 1f
    nop
    nop
    nop
    1: jmp known
    .size whole, .-whole
    function adds
    nopl 0x11223344(%rax)
    movdqu (%rdi), %xmm7
    paddd %xmm7, %xmm7
    movdqa %xmm7, %xmm8
    movdqu %xmm8, (%rsi)
    ret
    .size adds, .-adds
    .p2align 4
    leaf: mov %edi, %eax
    ret
    function known
    .cfi_startproc
    lea 1(%rdi), %rax
    ret
    .cfi_endproc
    .size known, .-known
    .data
    data: .quad 5
";

fn compile(code: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("code.s"), folder.path().join("code.so"));
    std::fs::write(&from, code).expect("a file");
    let arguments = ["-shared", "-nostdlib", "-Wl,--eh-frame-hdr", "-Wl,-Bsymbolic"];
    let done = Command::new("gcc").args(arguments).arg(&from).arg("-o").arg(&to).output();
    let done = done.expect("a compiler");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    std::fs::read(to).expect("what was assembled")
}

fn twins(original: &[u8], mode: twin::Mode<'_>) -> Vec<u8> {
    let rewritten = twin::rewrite(original, None, mode).expect("rewritten").bytes;
    check(original, &rewritten).unwrap_or_else(|refusal| panic!("{refusal}"));
    rewritten
}

fn rules(original: &[u8], rewritten: &[u8]) -> Vec<Rule> {
    match check(original, rewritten) {
        Ok(_) => Vec::new(),
        Err(Refusal::Wrong { violations, .. }) => violations.iter().map(|found| found.rule).collect(),
        Err(other) => panic!("{other}"),
    }
}

/// Exchanges some bytes wherever they stand; says how often.
fn exchange(bytes: &mut [u8], from: &[u8], to: &[u8]) -> usize {
    let found: Vec<usize> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(from)).collect();
    for &at in &found {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    found.len()
}

#[test]
fn what_is_beyond_doubt_has_a_twin() {
    let original = compile(CODE);
    for mode in [twin::Mode::Identity, twin::Mode::Poison(twin::VectorWidth::Sse)] {
        let report = twin::rewrite(&original, None, mode).expect("rewritten").coverage;
        assert_eq!(report.functions_twinned, 3, "{:?}", report.refused);
        assert_eq!(report.entries_patched, 3, "{:?}", report.kept);
    }
}

#[test]
fn what_is_doubtful_has_none() {
    // What to exchange in the code, with what, and how often it stands in both files together.
    let wrongs: [(&str, &[u8], &[u8], usize); 5] = [
        ("a gap that is no padding", &[0x90, 0x90, 0x90], &[0x90, 0x50, 0x90], 2),
        (
            "what calls looks below the stack pointer",
            &[0x48, 0x8b, 0x44, 0x24, 0x18],
            &[0x48, 0x8b, 0x44, 0x24, 0xf8],
            4,
        ),
        ("what is called names the stack", &[0x89, 0xf8, 0xc3], &[0x89, 0xe0, 0xc3], 2),
        ("what is called calls", &[0x89, 0xf8, 0xc3], &[0xff, 0xd0, 0xc3], 2),
        ("what is called loads from the frame", &[0x89, 0xf8, 0xc3], &[0x8b, 0x45, 0x08], 2),
    ];
    let original = compile(CODE);
    let rewritten = twins(&original, twin::Mode::Identity);
    for (name, from, to, times) in wrongs {
        let (mut old, mut new) = (original.clone(), rewritten.clone());
        let found = exchange(&mut old, from, to) + exchange(&mut new, from, to);
        assert!(found >= 2 && found <= times, "{name}: {found}");
        assert!(rules(&old, &new).contains(&Rule::Bare), "{name}: {:?}", check(&old, &new));
        let report = twin::rewrite(&old, None, twin::Mode::Identity).expect("rewritten").coverage;
        assert_eq!(report.functions_twinned, 2, "{name}: the rewriter should see it, too");
    }
}

/// Changes what symbols of functions say of themselves, in their fifth byte.
fn symbols(original: &[u8], files: &mut [&mut Vec<u8>], change: impl Fn(u8) -> u8) {
    let image = image::Image::parse(original).expect("ELF");
    let tables = image
        .sections()
        .iter()
        .filter(|s| matches!(s.kind, image::elf::abi::SHT_DYNSYM | image::elf::abi::SHT_SYMTAB));
    for section in tables {
        for entry in 1..section.size / 24 {
            let at = (section.offset + 24 * entry + 4) as usize;
            if original[at] & 0xf == 2 {
                for file in &mut *files {
                    file[at] = change(original[at]);
                }
            }
        }
    }
}

/// The symbols of functions become such of objects.
#[test]
fn what_nothing_names_has_none() {
    let original = compile(CODE);
    let rewritten = twins(&original, twin::Mode::Identity);
    let (mut old, mut new) = (original.clone(), rewritten);
    symbols(&original, &mut [&mut old, &mut new], |kind| kind & 0xf0 | 1);
    assert!(rules(&old, &new).contains(&Rule::Bare), "{:?}", check(&old, &new));
}

/// They become local: what has no frame description may be there to be copied.
#[test]
fn what_nobody_else_knows_has_none() {
    let local = |kind: u8| kind & 0xf;
    let original = compile(CODE);
    let rewritten = twins(&original, twin::Mode::Identity);
    let (mut old, mut new) = (original.clone(), rewritten);
    symbols(&original, &mut [&mut old, &mut new], local);
    assert!(rules(&old, &new).contains(&Rule::Bare), "{:?}", check(&old, &new));
    let report = twin::rewrite(&old, None, twin::Mode::Identity).expect("rewritten").coverage;
    assert_eq!(report.functions_twinned, 1, "{:?}", report.refused);

    // But for what is called from where a frame description is, be that one with a twin or without.
    for (calls, wanted) in [("call whole\n call adds", 3), ("call whole\n call adds\n .cfi_signal_frame", 2)]
    {
        let original = compile(&CODE.replace("lea 1(%rdi), %rax", calls));
        let mut old = original.clone();
        symbols(&original, &mut [&mut old], local);
        let rewritten = twin::rewrite(&old, None, twin::Mode::Identity).expect("rewritten");
        assert_eq!(rewritten.coverage.functions_twinned, wanted, "{calls}: {:?}", rewritten.coverage.refused);
        assert!(check(&old, &rewritten.bytes).is_ok(), "{calls}: {:?}", check(&old, &rewritten.bytes));
    }
}

#[test]
fn only_what_it_overwrites_is_dead() {
    let original = compile(CODE);
    let rewritten = twins(&original, twin::Mode::Poison(twin::VectorWidth::Sse));
    // Of xmm8, which it overwrites, and of xmm9, which it does not.
    let (dead, live) = ([0x66, 0x45, 0x0f, 0x76, 0xc0], [0x66, 0x45, 0x0f, 0x76, 0xc9]);
    let mut wrong = rewritten.clone();
    assert!(exchange(&mut wrong[original.len()..], &dead, &live) > 0, "poison of what is dead");
    assert!(rules(&original, &wrong).contains(&Rule::Inserted), "{:?}", check(&original, &wrong));
}
