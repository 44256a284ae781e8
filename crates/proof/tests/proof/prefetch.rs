//! Prefetch twins: accepted as they are made, and rejected once the prefetch is anything else.

use gleaner_proof::{Refusal, Rule, check};
use std::process::Command;

/// A loop over an array, whose load is at a known place behind a mark.
const SOURCE: &str = "
.text
.globl f
.type f, @function
f: .cfi_startproc
xor %eax, %eax
1: add (%rdi,%rsi,8), %rax
sub $1, %rsi
jnz 1b
ret
.cfi_endproc
.size f, .-f
";
/// `add (%rdi,%rsi,8), %rax`
const LOAD: &[u8] = &[0x48, 0x03, 0x04, 0xf7];
/// `prefetcht0 0x1000(%rdi,%rsi,8)`
const PREFETCH: &[u8] = &[0x0f, 0x18, 0x8c, 0xf7, 0, 0x10, 0, 0];

fn compiled() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("code.s"), folder.path().join("code.so"));
    std::fs::write(&from, SOURCE).expect("a file");
    let done = Command::new("gcc").args(["-shared", "-nostdlib"]).arg(&from).arg("-o").arg(&to).output();
    let done = done.expect("a compiler");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    std::fs::read(to).expect("what was assembled")
}

fn at(file: &[u8], bytes: &[u8]) -> Vec<usize> {
    (0..file.len()).filter(|&at| file[at..].starts_with(bytes)).collect()
}

#[test]
fn a_prefetch_is_all_that_a_prefetch_twin_may_hold() {
    let original = compiled();
    let [load] = at(&original, LOAD)[..] else { panic!("one load") };
    let module = image::Module::analyse(&original, None).expect("an ELF file");
    let address = module.image.address_of(units::FileOffset(load as u64)).expect("loaded").0;
    let wanted: twin::Prefetches = [(address, 0x1000)].into();
    let rewritten = twin::rewrite(&original, None, twin::Mode::Prefetch(&wanted)).expect("rewritten").bytes;
    check(&original, &rewritten).unwrap_or_else(|refusal| panic!("{refusal}"));
    let [place] = at(&rewritten, PREFETCH)[..] else { panic!("one prefetch") };
    let others: [&[u8]; 6] = [
        &[0x0f, 0x0d, 0x8c, 0xf7, 0, 0x10, 0, 0], // prefetchw
        &[0x48, 0x8b, 0x84, 0xf7, 0, 0x10, 0, 0], // mov 0x1000(%rdi,%rsi,8), %rax
        &[0x48, 0x8d, 0x84, 0xf7, 0, 0x10, 0, 0], // lea 0x1000(%rdi,%rsi,8), %rax
        &[0x48, 0x89, 0x84, 0xf7, 0, 0x10, 0, 0], // mov %rax, 0x1000(%rdi,%rsi,8)
        &[0x0f, 0x1f, 0x84, 0xf7, 0, 0x10, 0, 0], // nop
        &[0xe9, 0, 0, 0, 0, 0x90, 0x90, 0x90],    // jmp
    ];
    for other in others {
        let mut wrong = rewritten.clone();
        wrong[place..place + other.len()].copy_from_slice(other);
        let Err(Refusal::Wrong { violations, .. }) = check(&original, &wrong) else {
            panic!("accepted: {other:x?}")
        };
        assert!(violations.iter().any(|found| found.rule == Rule::Inserted), "{other:x?}: {violations:?}");
    }
    // Any distance will do.
    let mut nearer = rewritten.clone();
    nearer[place + 5] = 0x20;
    assert!(check(&original, &nearer).is_ok());
}
