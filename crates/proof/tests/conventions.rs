//! What is read behind a call by a pointer, though the ABI leaves nothing there, is kept over it by another convention: poison
//! in it is rejected.

use gleaner_proof::{Refusal, Rule, check};
use std::process::Command;

const CODE: &str = r"
    .text
    .globl goes_by_another
    .type goes_by_another, @function
    goes_by_another: .cfi_startproc
    push %rbx
    .cfi_adjust_cfa_offset 8
    movd %esi, %xmm9
    pcmpeqd %xmm10, %xmm10
    call *(%rdi)
    movd %xmm9, %eax
    pop %rbx
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size goes_by_another, .-goes_by_another
";
/// `pcmpeqd xmm10, xmm10`, and of xmm9.
const DEAD: [u8; 5] = [0x66, 0x45, 0x0f, 0x76, 0xd2];
const KEPT: [u8; 5] = [0x66, 0x45, 0x0f, 0x76, 0xc9];
const CALL: [u8; 2] = [0xff, 0x17];

fn compile() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("code.s"), folder.path().join("code.so"));
    std::fs::write(&from, CODE).expect("a file");
    let done = Command::new("gcc").args(["-shared", "-nostdlib"]).arg(&from).arg("-o").arg(&to).output();
    let done = done.expect("a compiler");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    std::fs::read(to).expect("what was assembled")
}

#[test]
fn what_is_read_behind_a_call_by_a_pointer_is_live_before_it() {
    let original = compile();
    let poison = twin::Mode::Poison(twin::VectorWidth::Sse);
    let rewritten = twin::rewrite(&original, None, poison).expect("rewritten").bytes;
    check(&original, &rewritten).unwrap_or_else(|refusal| panic!("{refusal}"));
    // The original's call comes first, then that of the twin.
    let all = |wanted: &[u8]| -> Vec<usize> {
        (original.len()..rewritten.len()).filter(|&at| rewritten[at..].starts_with(wanted)).collect()
    };
    let call = all(&CALL)[0];
    let last = all(&DEAD).into_iter().rfind(|&at| at < call).expect("poison right before the call");
    let mut wrong = rewritten.clone();
    wrong[last..last + KEPT.len()].copy_from_slice(&KEPT);
    let Err(Refusal::Wrong { violations, .. }) = check(&original, &wrong) else { panic!("accepted") };
    let what = &violations[0].what;
    assert!(violations[0].rule == Rule::Inserted && what.ends_with("xmm9"), "{violations:?}");
}
