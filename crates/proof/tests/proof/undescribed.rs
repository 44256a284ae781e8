//! Code without frame descriptions has no twins, nor has anything in a program of Go. What such
//! code refers to is seen all the same, from each of its names on.

use crate::assembled::{assembled, at};
use gleaner_proof::{Refusal, Rule, check};
use image::Image;
use image::unwind::frames::Frames;
use twin::{Mode, VectorWidth, rewrite};

/// A function that always writes rcx, for a caller that reads it, unless `named` enters it behind
/// that; before `named` stands a byte that makes an instruction with its first ones.
fn code(named: &str) -> String {
    format!(
        ".text
        .globl named
        .type named, @function
        .byte 5
        named: {named}
        .size named, . - named
        .p2align 4, 0xcc
        .globl f
        .type f, @function
        f: first: .cfi_startproc
        mov $1, %ecx
        add %ecx, %edi
        middle: lea 1(%rdi), %eax
        ret
        .cfi_endproc
        .size f, . - f
        .globl g
        .type g, @function
        g: .cfi_startproc
        nopl 0(%rax)
        call first
        add %ecx, %eax
        ret
        .cfi_endproc
        .size g, . - g
        .section .xo.module, \"a\"
        .quad 1
        .text\n"
    )
}

const HARMLESS: &str = "jmp .L; .byte 0, 0, 0; .L: ret";

fn poisoned(original: &[u8]) -> Vec<u8> {
    rewrite(original, None, Mode::Poison(VectorWidth::Sse)).expect("it can be rewritten").bytes
}

fn rules(original: &[u8], rewritten: &[u8]) -> Vec<Rule> {
    match check(original, rewritten) {
        Ok(_) => Vec::new(),
        Err(Refusal::Wrong { violations, .. }) => violations.iter().map(|found| found.rule).collect(),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn it_has_no_twins() {
    let original = assembled(&code(HARMLESS));
    for mode in [Mode::Identity, Mode::Poison(VectorWidth::Sse)] {
        let rewritten = rewrite(&original, None, mode).expect("it can be rewritten");
        let coverage = rewritten.coverage;
        assert_eq!((coverage.functions, coverage.functions_twinned), (3, 2));
        assert_eq!(coverage.refused[0].reason.to_string(), "not in the unwind table");
        assert!(check(&original, &rewritten.bytes).is_ok());
    }

    // A description of no byte describes nothing.
    let place = |file: &[u8]| {
        let image = Image::parse(file).expect("ELF");
        let fde = Frames::of(&image).expect("frames").fdes[0].offset;
        let size = image.section(".eh_frame").expect("frames").offset as usize + fde as usize + 12;
        size..size + 4
    };
    let (mut old, mut new) = (original.clone(), poisoned(&original));
    for (file, size) in [(&mut old, place(&original)), (&mut new, place(&original))] {
        file[size].fill(0);
    }
    let size = place(&poisoned(&original));
    new[size].fill(0);
    assert_eq!(rules(&old, &new)[..], [Rule::Mapping]);
}

#[test]
fn programs_of_go_have_none() {
    let mut old = assembled(&code(HARMLESS));
    let mut new = poisoned(&old);
    for (file, times) in [(&mut old, 1), (&mut new, 2)] {
        let names = at(file, b".xo.module");
        assert_eq!(names.len(), times);
        for name in names {
            file[name + 1] = b'g';
        }
    }
    assert_eq!(rules(&old, &new)[..], [Rule::Mapping]);
    let refused = rewrite(&old, None, Mode::Identity).err().map(|why| why.to_string());
    assert!(refused.is_some_and(|why| why.starts_with("a Go program: ")));
}

#[test]
fn it_is_read_from_its_names_on() {
    // Out of step there would be a branch into the middle: `loopne`, inside of a constant.
    let inside = ".byte 0x48, 0xc7, 0x45, 0xf0, 0xe0; .byte middle - (. + 1), 0, 0; ret";
    let original = assembled(&code(inside));
    let rewritten = poisoned(&original);
    assert_eq!(rules(&original, &rewritten), []);

    // And this one would be lost: to `f`, or to its middle.
    let (to_start, to_middle) = ([5, 0xe9, 10, 0, 0, 0], 17);
    let mut original = assembled(&code(".byte 0xe9; .long first - (. + 4)"));
    let mut rewritten = poisoned(&original);
    assert_eq!(rules(&original, &rewritten), []);
    for file in [&mut original, &mut rewritten] {
        let jump = at(file, &to_start);
        assert_eq!(jump.len(), 1);
        file[jump[0] + 2] = to_middle;
    }
    assert_eq!(rules(&original, &rewritten)[..1], [Rule::Inserted], "rcx may be kept over the call");
}
