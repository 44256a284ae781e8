//! Calls by pointers of functions whose convention is not known. Each program here is
//! poisoned as it is; then one of its instructions becomes another one, in the original and in the
//! twin alike, and the same poison stands where a callee may read: that must be rejected.

use gleaner_proof::{Refusal, Rule, Violation, check};
use std::process::Command;

/// `mov (%rdi), %edx`, and `call *(%rdi)` in its place.
const LOAD: &[u8] = &[0x8b, 0x17];
const CALL: &[u8] = &[0xff, 0x17];

fn compile(body: &str) -> Vec<u8> {
    let text = format!(
        ".text\n.globl f\n.type f, @function\nf: .cfi_startproc\npush %r12\n.cfi_adjust_cfa_offset 8\n.cfi_offset r12, -16\n\
         nopl 8(%rax)\n{body}\npop %r12\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size f, .-f\n"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("code.s"), folder.path().join("code.so"));
    std::fs::write(&from, text).expect("a file");
    let done = Command::new("gcc").args(["-shared", "-nostdlib"]).arg(&from).arg("-o").arg(&to).output();
    let done = done.expect("a compiler");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    std::fs::read(to).expect("what was assembled")
}

/// What is wrong once `from` is `to`; each place of it with the registers named there.
fn wrong(body: &str, from: &[u8], to: &[u8]) -> Vec<Violation> {
    let mut original = compile(body);
    let poison = twin::Mode::Poison(twin::VectorWidth::Avx512);
    let mut rewritten = twin::rewrite(&original, None, poison).expect("rewritten").bytes;
    check(&original, &rewritten).unwrap_or_else(|refusal| panic!("{refusal}"));
    for (file, times) in [(&mut original, 1), (&mut rewritten, 2)] {
        let places: Vec<usize> = (0..file.len()).filter(|&at| file[at..].starts_with(from)).collect();
        assert_eq!(places.len(), times, "{from:x?}");
        for at in places {
            file[at..at + to.len()].copy_from_slice(to);
        }
    }
    let Err(Refusal::Wrong { violations, .. }) = check(&original, &rewritten) else { panic!("accepted") };
    assert!(violations.iter().all(|found| found.rule == Rule::Inserted), "{violations:?}");
    violations
}

fn named(violations: &[Violation], register: &str) -> usize {
    violations.iter().filter(|found| found.what.ends_with(register)).count()
}

#[test]
fn a_call_by_a_pointer_may_be_passed_something_in_any_register() {
    let body = "mov (%rdi), %edx\nmov %edx, %eax\npxor %xmm10, %xmm10\nkmovw %eax, %k3\nmov %eax, %r12d";
    let found = wrong(body, LOAD, CALL);
    for register in ["r12", "xmm10", "k3"] {
        assert!(named(&found, register) > 0, "{register}: {found:?}");
    }
}

#[test]
fn what_is_read_behind_a_call_of_another_module_is_kept_over_it() {
    let body = "movd %esi, %xmm9\ncall other@PLT\nmovd %eax, %xmm9\nmovd %xmm9, %eax";
    // movd %eax, %xmm9 becomes movd %xmm9, %eax: behind the call, and before it.
    let found = wrong(body, &[0x66, 0x44, 0x0f, 0x6e, 0xc8], &[0x66, 0x44, 0x0f, 0x7e, 0xc8]);
    assert!(named(&found, "xmm9") > 1, "{found:?}");
}

#[test]
fn what_a_call_by_a_pointer_leaves_may_be_handed_back() {
    // Behind the load, where poison goes once; before it there is none, for rsi holds some already.
    let body = "mov %edx, %esi\nmov (%rdi), %edx\nmov %esi, %eax";
    let found = wrong(body, LOAD, CALL);
    assert!(named(&found, "rsi") > 0, "{found:?}");
}

#[test]
fn what_is_written_and_not_read_is_returned() {
    let body = "mov (%rdi), %edx\nmov %edx, %esi\nmov %esi, %eax\nmov %eax, %r12d";
    // mov %esi, %eax becomes mov %edx, %eax.
    let found = wrong(body, &[0x89, 0xf0], &[0x89, 0xd0]);
    assert!(named(&found, "rsi") > 0, "{found:?}");
}

#[test]
fn functions_that_may_keep_all_registers_keep_them_over_other_modules() {
    let body = "mov %edx, %ecx\ncall other@PLT";
    // mov %edx, %ecx becomes mov %edx, %eax: nothing shows any more that rcx, or any other
    // register, is changed on purpose.
    let found = wrong(body, &[0x89, 0xd1], &[0x89, 0xd0]);
    for register in ["zmm16", "k3"] {
        assert!(named(&found, register) > 0, "{register}: {found:?}");
    }
}
