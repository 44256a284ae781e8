//! Prefetch twins: accepted as they are made, and rejected once the prefetch is anything else.

use super::assembled::{assembled, at};
use gleaner_proof::{Refusal, Rule, check};

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

#[test]
fn a_prefetch_is_all_that_a_prefetch_twin_may_hold() {
    let original = assembled(SOURCE);
    let [load] = at(&original, LOAD)[..] else { panic!("one load") };
    let module = image::Module::analyse(&original, None).expect("an ELF file");
    let address = module.image.address_of(units::FileOffset(load as u64)).expect("loaded").0;
    let wanted: twin::Prefetches = [(address, vec![twin::Ahead::Bytes(0x1000)])].into();
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

/// A loop that is indexed by what another load reads.
const INDEXED: &str = "
.text
.globl f
.type f, @function
f: .cfi_startproc
xor %eax, %eax
1: movslq (%rsi,%rax,4), %rdx
add (%rdi,%rdx,8), %rcx
add $1, %rax
cmp %r8, %rax
jne 1b
mov %rcx, %rax
ret
.cfi_endproc
.size f, .-f
";
/// `add (%rdi,%rdx,8), %rcx`
const INDEXED_LOAD: &[u8] = &[0x48, 0x03, 0x0c, 0xd7];
/// `and $0xfff, %edx; cmp $0xfbc, %edx; ja …`
const INSIDE: &[u8] = &[0x81, 0xe2, 0xff, 0x0f, 0, 0, 0x81, 0xfa, 0xbc, 0x0f, 0, 0, 0x77];
/// `movslq 0x40(%rsi,%rax,4), %rdx`
const LATER: &[u8] = &[0x48, 0x63, 0x54, 0x86, 0x40];

#[test]
fn the_index_of_later_is_read_in_the_page_of_now() {
    let original = assembled(INDEXED);
    let [load] = at(&original, INDEXED_LOAD)[..] else { panic!("one load") };
    let module = image::Module::analyse(&original, None).expect("an ELF file");
    let address = module.image.address_of(units::FileOffset(load as u64)).expect("loaded").0;
    let rewritten = |steps| {
        let wanted: twin::Prefetches = [(address, vec![twin::Ahead::Steps(steps)])].into();
        twin::rewrite(&original, None, twin::Mode::Prefetch(&wanted)).expect("rewritten")
    };
    let right = rewritten(16).bytes;
    check(&original, &right).unwrap_or_else(|refusal| panic!("{refusal}"));
    check(&original, &rewritten(-16).bytes).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(rewritten(2000).coverage.inserted_bytes, 0, "it would be another page");
    let ([inside], [later]) = (&at(&right, INSIDE)[..], &at(&right, LATER)[..]) else { panic!("one each") };
    let wrong: [(&str, usize, u8); 9] = [
        ("a mask of less than a page", inside + 2, 0xfe),
        ("a byte further than the page", inside + 8, 0xbd),
        ("the other way round", inside + 12, 0x76),
        ("always", inside + 12, 0xeb),
        ("into the midst of it", inside + 13, 1),
        ("a little further on", later + 4, 0x44),
        ("by another index", later + 3, 0x8e),
        ("into a register that lives", later + 2, 0x4c),
        ("a store", later + 1, 0x89),
    ];
    for (what, at, byte) in wrong {
        let mut broken = right.clone();
        broken[at] = byte;
        let Err(Refusal::Wrong { violations, .. }) = check(&original, &broken) else {
            panic!("accepted: {what}")
        };
        assert!(violations.iter().any(|found| found.rule == Rule::Inserted), "{what}: {violations:?}");
    }
}

#[test]
fn flags_that_live_are_left_alone() {
    // The carry of `add` goes round the loop.
    let source = INDEXED.replace("add (%rdi,%rdx,8), %rcx", "adc (%rdi,%rdx,8), %rcx");
    let source = source.replace("add $1, %rax\ncmp %r8, %rax\njne 1b", "lea 1(%rax), %rax\ndec %r8\njne 1b");
    let original = assembled(&source);
    let [load] = at(&original, &[0x48, 0x13, 0x0c, 0xd7])[..] else { panic!("one load") };
    let module = image::Module::analyse(&original, None).expect("an ELF file");
    let address = module.image.address_of(units::FileOffset(load as u64)).expect("loaded").0;
    let wanted: twin::Prefetches = [(address, vec![twin::Ahead::Steps(16)])].into();
    let rewritten = twin::rewrite(&original, None, twin::Mode::Prefetch(&wanted)).expect("rewritten");
    assert_eq!(rewritten.coverage.inserted_bytes, 0);
}

#[test]
fn each_prefetch_has_a_byte_that_switches_it() {
    use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};
    use twin::Ahead::{Bytes, Steps};
    for (source, load, forms, off) in [
        (SOURCE, LOAD, vec![Bytes(-0x1000), Bytes(64)], 2),
        (INDEXED, INDEXED_LOAD, vec![Steps(8), Steps(2000), Steps(32)], 2),
    ] {
        let original = assembled(source);
        let [load] = at(&original, load)[..] else { panic!("one load") };
        let module = image::Module::analyse(&original, None).expect("an ELF file");
        let address = module.image.address_of(units::FileOffset(load as u64)).expect("loaded").0;
        let wanted: twin::Prefetches = [(address, forms.clone())].into();
        let mut rewritten =
            twin::rewrite(&original, None, twin::Mode::Prefetch(&wanted)).expect("rewritten").bytes;
        check(&original, &rewritten).unwrap_or_else(|refusal| panic!("{refusal}"));
        let switches = twin::switches(&original, &rewritten, &wanted).expect("readable");
        let told: Vec<_> = switches.iter().map(|one| one.ahead).collect();
        let possible: Vec<_> = forms.into_iter().filter(|&one| one != Steps(2000)).collect();
        assert_eq!((told, switches.len()), (possible, off));
        for one in switches {
            let at = one.offset as usize;
            assert_eq!(rewritten[at], one.on);
            rewritten[at] = one.off;
            let begin = if one.off == 0xeb { at } else { at - 1 };
            let now = Decoder::new(64, &rewritten[begin..begin + 15], DecoderOptions::NONE).decode();
            let is_off = matches!(now.mnemonic(), Mnemonic::Nop | Mnemonic::Reservednop)
                || now.flow_control() == FlowControl::UnconditionalBranch;
            assert!(is_off, "{now}");
        }
    }
}

#[test]
fn a_prefetch_of_the_program_is_jumped_over_and_nothing_else_is() {
    let source = SOURCE.replace("1: add", "1: prefetcht0 0x40(%rdi,%rsi,8)\nadd");
    let original = assembled(&source);
    let [own] = at(&original, &[0x0f, 0x18, 0x4c, 0xf7, 0x40])[..] else { panic!("one prefetch") };
    let module = image::Module::analyse(&original, None).expect("an ELF file");
    let address = module.image.address_of(units::FileOffset(own as u64)).expect("loaded").0;
    let wanted: twin::Prefetches = [(address, vec![twin::Ahead::Never])].into();
    let rewritten = twin::rewrite(&original, None, twin::Mode::Prefetch(&wanted)).expect("rewritten");
    assert_eq!(rewritten.coverage.inserted_bytes, 2);
    check(&original, &rewritten.bytes).unwrap_or_else(|refusal| panic!("{refusal}"));
    let [jump] = at(&rewritten.bytes, &[0xeb, 5, 0x0f, 0x18, 0x4c, 0xf7, 0x40])[..] else {
        panic!("one jump")
    };
    for further in [4, 6, 9] {
        let mut wrong = rewritten.bytes.clone();
        wrong[jump + 1] = further;
        let Err(Refusal::Wrong { violations, .. }) = check(&original, &wrong) else { panic!("{further}") };
        assert!(violations.iter().any(|found| found.rule == Rule::Inserted), "{further}: {violations:?}");
    }
    let load: twin::Prefetches = [(address + 5, vec![twin::Ahead::Never])].into();
    let rewritten = twin::rewrite(&original, None, twin::Mode::Prefetch(&load)).expect("rewritten");
    assert_eq!(rewritten.coverage.inserted_bytes, 0, "a load is never left out");
}
