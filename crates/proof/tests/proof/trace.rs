//! Trace twins: accepted as they are made, and rejected once an entry is anything else.

use super::assembled::{assembled, at};
use gleaner_proof::{Refusal, Rule, check};

/// All kinds of accesses: by registers, relative to RIP, thread-local, the stack's, a string's.
const SOURCE: &str = "
.text
.globl f
.type f, @function
f: .cfi_startproc
push %rbx
mov %fs:0x28, %rax
mov %rsi, %rcx
1: add -8(%rdi,%rcx,8), %rax
sub $1, %rcx
jnz 1b
add word(%rip), %rax
mov $16, %ecx
rep movsb
pop %rbx
ret
.cfi_endproc
.size f, .-f
.data
word: .quad 1
";

/// As libc's copies of memory: `other` enters `entered` behind its first instruction.
const ENTERED: &str = "
.text
.globl entered
.type entered, @function
entered: .cfi_startproc
mov %rdi, %rax
1: mov (%rsi), %rcx
mov %rcx, (%rdi)
ret
.cfi_endproc
.size entered, .-entered
.globl other
.type other, @function
other: .cfi_startproc
lea (%rdi,%rdx), %rax
jmp 1b
.cfi_endproc
.size other, .-other
";

/// `mov fs:[0x80], rcx`, with which each entry begins.
const BEGIN: &[u8] = &[0x64, 0x48, 0x89, 0x0c, 0x25, 0x80, 0, 0, 0];
const END: &[u8] = &[0x64, 0x48, 0x8b, 0x0c, 0x25, 0x80, 0, 0, 0];

#[test]
fn every_byte_of_an_entry_counts() {
    let original = assembled(SOURCE);
    let rewritten = twin::rewrite(&original, None, twin::Mode::Trace(5)).expect("rewritten").bytes;
    check(&original, &rewritten).unwrap_or_else(|refusal| panic!("{refusal}"));
    let (begins, ends) = (at(&rewritten, BEGIN), at(&rewritten, END));
    // push, fs, add, add, count and source and destination, pop, ret
    assert_eq!((begins.len(), ends.len()), (9, 9));
    let mut accepted = Vec::new();
    for (&begin, &end) in begins.iter().zip(&ends) {
        for byte in begin..end + END.len() {
            let mut wrong = rewritten.clone();
            wrong[byte] ^= 0x04;
            match check(&original, &wrong) {
                Ok(_) => accepted.push((byte - begin, end + END.len() - byte)),
                Err(Refusal::Wrong { violations, .. }) => {
                    assert!(violations.iter().any(|found| found.rule == Rule::Inserted), "{violations:?}");
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
    // The number of the module may be any: two bytes of each entry.
    assert_eq!(accepted.len(), 2 * begins.len(), "{accepted:?}");
    assert!(accepted.iter().all(|&(_, from_end)| (62..64).contains(&from_end)), "{accepted:?}");
}

#[test]
fn an_entry_for_another_access_is_none() {
    let original = assembled(SOURCE);
    let rewritten = twin::rewrite(&original, None, twin::Mode::Trace(5)).expect("rewritten").bytes;
    let begins = at(&rewritten, BEGIN);
    let ends = at(&rewritten, END);
    // The push's entry and the pop's are equally long, and of other instructions.
    let entry = |number: usize| begins[number]..ends[number] + END.len();
    assert_eq!(entry(7).len(), entry(8).len(), "those of pop and ret");
    let mut wrong = rewritten.clone();
    wrong.copy_within(entry(7), begins[8]);
    let Err(Refusal::Wrong { violations, .. }) = check(&original, &wrong) else { panic!("accepted") };
    assert!(violations.iter().any(|found| found.to_string().contains("another instruction")));
}

/// `jmp rel32` in the code of `entered`, as an offset in it.
fn patch(original: &[u8], rewritten: &[u8]) -> Option<usize> {
    const CODE: &[u8] = &[0x48, 0x89, 0xf8, 0x48, 0x8b, 0x0e, 0x48, 0x89, 0x0f, 0xc3];
    let begin = at(original, CODE)[0];
    (0..CODE.len()).find(|offset| original[begin + offset] != rewritten[begin + offset])
}

#[test]
fn what_is_entered_behind_its_entry_leads_to_its_twin_from_there() {
    let original = assembled(ENTERED);
    let rewritten = twin::rewrite(&original, None, twin::Mode::Trace(5)).expect("rewritten").bytes;
    check(&original, &rewritten).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(patch(&original, &rewritten), Some(3));
    // Modes in which twins say what may run where know no such jumps.
    let identity = twin::rewrite(&original, None, twin::Mode::Identity).expect("rewritten").bytes;
    assert_eq!(patch(&original, &identity), None);
}

#[test]
fn a_jump_to_a_twin_stands_where_control_gets_to_from_the_entry() {
    // Behind a branch, nothing says that it is the entry's.
    let branches = "
.text
.globl f
.type f, @function
f: .cfi_startproc
1: test %rdi, %rdi
2: jz 3f
mov (%rsi), %rcx
mov %rcx, (%rdi)
3: ret
.cfi_endproc
.size f, .-f
.globl g
.type g, @function
g: .cfi_startproc
test %rsi, %rsi
jz 2b
ret
.cfi_endproc
.size g, .-g
";
    let original = assembled(branches);
    let rewritten = twin::rewrite(&original, None, twin::Mode::Trace(5)).expect("rewritten");
    check(&original, &rewritten.bytes).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(rewritten.coverage.kept.len(), 0, "{:?}", rewritten.coverage.kept);
    let begin = at(&original, &[0x48, 0x85, 0xff, 0x74])[0];
    assert_eq!(
        rewritten.bytes[begin..begin + 3],
        original[begin..begin + 3],
        "what is before it runs as it is"
    );
    assert_eq!(rewritten.bytes[begin + 3], 0xe9, "a jump over the branch and what follows it");
    // The mapping says that it is elsewhere: behind the branch.
    let units = at(&rewritten.bytes, &3_u32.to_le_bytes());
    let mut refused = 0;
    for place in units.into_iter().filter(|&place| place >= original.len()) {
        let mut wrong = rewritten.bytes.clone();
        wrong[place..place + 4].copy_from_slice(&5_u32.to_le_bytes());
        let Err(Refusal::Wrong { violations, .. }) = check(&original, &wrong) else { continue };
        refused += usize::from(violations.iter().any(|found| found.rule == Rule::Entry));
    }
    assert!(refused > 0, "a patch behind a branch was accepted");
}
