//! No twin may call what uses its return address. Each function below is harmless as it stands: it
//! does to something of its caller's what it would do to its return address if one byte were
//! another one. Then callers have twins; and when that byte has changed, in the original and in its
//! twin alike, they are wrong.

use gleaner_proof::{Refusal, Rule, check};
use image::Image;
use image::elf::symbols::Symbols;
use std::process::Command;

/// A function, where the byte is, and what it becomes.
const CASES: &[(&str, usize, u8)] = &[
    ("loads_at_once", 4, 0),
    ("loads_behind_endbr", 8, 0),
    ("adds_in_place", 5, 8),
    ("adds_by_frame", 7, 8),
    ("adds_later", 7, 8),
    ("reads_what_is_there", 7, 8),
    ("exchanges", 5, 8),
    ("takes_off", 1, 0x59),
    ("has_no_twin", 5, 8),
    ("is_jumped_to", 5, 8),
    ("is_jumped_to_and_unknown", 4, 0),
    ("is_in_the_middle", 4, 0),
    ("looks_back", 13, 0xf8),
];

const CODE: &str = r"
    .macro function name
    .globl \name
    .type \name, @function
    \name: .cfi_startproc
    .endm
    .macro end name
    .cfi_endproc
    .size \name, .-\name
    .endm
    .macro pushed
    push %rbx
    .cfi_adjust_cfa_offset 8
    .endm
    .macro popped
    pop %rbx
    .cfi_adjust_cfa_offset -8
    ret
    .endm
    .macro framed
    push %rbp
    .cfi_def_cfa_offset 16
    mov %rsp, %rbp
    .cfi_def_cfa_register 6
    .endm
    .macro unframed
    pop %rbp
    .cfi_def_cfa 7, 8
    ret
    .endm

    function loads_at_once
    mov 8(%rsp), %rax
    ret
    end loads_at_once
    function loads_behind_endbr
    endbr64
    mov 8(%rsp), %rax
    ret
    end loads_behind_endbr
    function adds_in_place
    pushed
    incq 16(%rsp)
    popped
    end adds_in_place
    function adds_by_frame
    framed
    mov 16(%rbp), %rdx
    add $4, %rdx
    unframed
    end adds_by_frame
    function adds_later
    pushed
    xor %eax, %eax
    mov 16(%rsp), %rdx
    mov %rdx, %rcx
    test %rdx, %rdx
    lea 4(%rcx), %rcx
    popped
    end adds_later
    function reads_what_is_there
    framed
    mov 16(%rbp), %rdx
    prefetcht0 (%rdx)
    unframed
    end reads_what_is_there
    function exchanges
    pushed
    xchg %rdx, 16(%rsp)
    xchg %rdx, 16(%rsp)
    popped
    end exchanges
    function takes_off
    nop
    nop
    nop
    add $4, %rcx
    ret
    end takes_off
    function has_no_twin
    .cfi_signal_frame
    pushed
    decq 16(%rsp)
    popped
    end has_no_twin
    function is_jumped_to
    pushed
    subq $1, 16(%rsp)
    popped
    end is_jumped_to
    function jumps
    mov $1, %eax
    jmp is_jumped_to
    end jumps
    is_jumped_to_and_unknown:
    mov 8(%rsp), %rax
    ret
    .size is_jumped_to_and_unknown, .-is_jumped_to_and_unknown
    .type is_jumped_to_and_unknown, @function
    function jumps_there
    mov $1, %eax
    jmp is_jumped_to_and_unknown
    end jumps_there
    function is_around
    mov $2, %eax
    is_in_the_middle:
    mov 8(%rsp), %rax
    ret
    end is_around

    function looks_back
    pushed
    call hands_it_on
    mov %rax, %rdx
    mov -16(%rsp), %rdx
    popped
    end looks_back

    function has_another_frame
    .cfi_escape 0x0a, 0x0b, 0x0a, 0x0b, 0x0a, 0x0b, 0x0e, 8
    xor %eax, %eax
    ret
    end has_another_frame

    function has_a_part
    pushed
    cmp $99, %rdi
    je part
    popped
    end has_a_part
    function part
    .cfi_def_cfa_offset 16
    popped
    end part

    function hands_it_on
    pushed
    mov 8(%rsp), %rdi
    mov %rdi, last(%rip)
    xor %eax, %eax
    popped
    end hands_it_on
    function realigns
    lea 8(%rsp), %r10
    .cfi_def_cfa 10, 0
    and $-32, %rsp
    push -8(%r10)
    mov %r10, %rsp
    sub $8, %rsp
    .cfi_def_cfa 7, 8
    ret
    end realigns
    function puts_another
    lea 1f(%rip), %rax
    mov %rax, -8(%rsp)
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    ret
    1: .cfi_adjust_cfa_offset -8
    ret
    end puts_another
    .comm last, 8, 8
";

fn compile() -> Vec<u8> {
    let callees = CASES.iter().map(|case| case.0).chain([
        "jumps",
        "jumps_there",
        "has_a_part",
        "has_another_frame",
        "hands_it_on",
        "realigns",
        "puts_another",
    ]);
    let mut source = format!("asm(R\"({CODE})\");\n");
    let mut calls = String::new();
    for callee in callees {
        source += &format!("extern \"C\" void {callee}(...);\n");
        // Something of the caller's lies where a return address might.
        calls += &format!("{callee}(1, 2, 3, 4, 5, 6, &n, &n, &n);\n");
    }
    source += &format!("int main(int n, char **) {{\n{calls}return 0; }}\n");
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("program.cc"), folder.path().join("program"));
    std::fs::write(&from, source).expect("a file");
    let done = Command::new("g++").arg(&from).args(["-O1", "-o"]).arg(&to).output().expect("a compiler");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(Command::new(&to).status().expect("it runs").success());
    std::fs::read(to).expect("what was compiled")
}

fn named(file: &[u8], name: &str) -> Option<usize> {
    let image = Image::parse(file).expect("a sound file");
    let symbols = Symbols::of(&image, None);
    let address = symbols.all().iter().find(|symbol| symbol.name == name.as_bytes())?.address;
    Some(image.file_offset(address)?.0 as usize)
}

#[test]
fn a_function_that_uses_its_return_address_is_called_by_no_twin() {
    let original = compile();
    let rewritten = twin::rewrite(&original, None, twin::Mode::Identity).expect("rewritten").bytes;
    check(&original, &rewritten).expect("right as it is");
    assert!(named(&rewritten, "main.twin").is_some(), "what only hands it on may be called");
    for &(name, at, byte) in CASES {
        let (mut original, mut rewritten) = (original.clone(), rewritten.clone());
        let place = named(&original, name).expect("a function") + at;
        assert_ne!(original[place], byte, "{name}");
        // In an entry patch there is nothing of the original's left.
        if rewritten[place] == original[place] {
            rewritten[place] = byte;
        }
        let (whole, behind) = if name == "is_in_the_middle" { ("is_around", 5) } else { (name, 0) };
        if let Some(twin) = named(&rewritten, &format!("{whole}.twin")) {
            let at = behind + at;
            assert_eq!(rewritten[twin + at], original[place], "{name}");
            rewritten[twin + at] = byte;
        }
        original[place] = byte;
        let Err(Refusal::Wrong { violations, .. }) = check(&original, &rewritten) else {
            panic!("{name}: accepted")
        };
        assert!(violations.iter().all(|violation| violation.rule == Rule::Calls), "{name}: {violations:?}");
        // The rewriter sees it, too.
        let rewritten = twin::rewrite(&original, None, twin::Mode::Identity).expect("rewritten").bytes;
        check(&original, &rewritten).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        let without = if name == "looks_back" { name } else { "main" };
        assert!(named(&rewritten, &format!("{without}.twin")).is_none(), "{name}");
    }
}

/// The table of what is called is changed, in both files: its frame begins elsewhere.
#[test]
fn a_function_without_the_usual_frame_is_called_by_no_twin() {
    const RULES: [u8; 8] = [0x0a, 0x0b, 0x0a, 0x0b, 0x0a, 0x0b, 0x0e, 8];
    let mut original = compile();
    let mut rewritten = twin::rewrite(&original, None, twin::Mode::Identity).expect("rewritten").bytes;
    for (file, count) in [(&mut original, 1), (&mut rewritten, 2)] {
        let found: Vec<usize> = (0..file.len() - 8).filter(|&at| file[at..at + 8] == RULES).collect();
        assert!(found.len() >= count, "the function's own description, and that of its twin");
        for at in found {
            file[at + 7] = 16;
        }
    }
    let Err(Refusal::Wrong { violations, .. }) = check(&original, &rewritten) else { panic!("accepted") };
    assert!(violations.iter().any(|violation| violation.rule == Rule::Calls), "{violations:?}");
    let rewritten = twin::rewrite(&original, None, twin::Mode::Identity).expect("rewritten").bytes;
    check(&original, &rewritten).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert!(named(&rewritten, "main.twin").is_none());
}
