//! Site yields of guests, which may be off: accepted as they are made, and rejected where one that
//! is off would neither yield nor use budget.

use super::assembled::{assembled, at};
use gleaner_proof::{Refusal, Rule, check};

/// A chase through a list, whose load is at a known place behind a mark.
const SOURCE: &str = "
.text
.globl f
.type f, @function
f: .cfi_startproc
1: mov (%rdi), %rdi
test %rdi, %rdi
jnz 1b
ret
.cfi_endproc
.size f, .-f
";
/// `mov (%rdi), %rdi`
const LOAD: &[u8] = &[0x48, 0x8b, 0x3f];
/// `sub dword gs:[BUDGET], ` a small number
const CHARGE: &[u8] = &[0x65, 0x83, 0x2c, 0x25, 0x28, 0, 0, 0];
/// `mov gs:[BUDGET], `
const REFILL: &[u8] = &[0x25, 0x28, 0, 0, 0];

fn rules(original: &[u8], rewritten: &[u8]) -> Vec<Rule> {
    match check(original, rewritten) {
        Ok(_) => Vec::new(),
        Err(Refusal::Wrong { violations, .. }) => violations.iter().map(|found| found.rule).collect(),
        Err(refusal) => panic!("{refusal}"),
    }
}

#[test]
fn a_site_that_is_off_uses_budget() {
    let original = assembled(SOURCE);
    let [load] = at(&original, LOAD)[..] else { panic!("one load") };
    let module = image::Module::analyse(&original, None).expect("an ELF file");
    let address = module.image.address_of(units::FileOffset(load as u64)).expect("loaded").0;
    let sites = twin::Sites {
        which: twin::SiteChoice::Listed([(address, twin::Site { with: Vec::new(), prefetch: None })].into()),
        spins: [].into(),
        width: twin::VectorWidth::Sse,
        knowledge: twin::Knowledge::OfCallers,
        save_all_at: [].into(),
        optimisations: twin::Optimisations::ALL,
    };
    let mode = twin::Mode::Scavenger(&sites, twin::Bounds::default());
    let rewritten = twin::rewrite(&original, None, mode).expect("rewritten").bytes;
    assert_eq!(rules(&original, &rewritten), []);
    // The site is its entry's yield, too.
    let [charge] = at(&rewritten, CHARGE)[..] else { panic!("one yield") };
    let spoilt = |at: usize, bytes: &[u8]| {
        let mut wrong = rewritten.clone();
        wrong[at..at + bytes.len()].copy_from_slice(bytes);
        rules(&original, &wrong)
    };
    // Without end where it is off: it costs nothing, less than nothing, or is not asked.
    let cost = charge + CHARGE.len();
    let (jne, jns, behind) = (charge - 6, cost + 1, cost + 7);
    assert!(rewritten[jne..].starts_with(&[0x0f, 0x85]) && rewritten[jns..].starts_with(&[0x0f, 0x89]));
    assert!(!spoilt(cost, &[0]).is_empty(), "nothing");
    assert!(!spoilt(cost, &[0x80]).is_empty(), "less than nothing");
    assert!(!spoilt(charge, &[0x90; 9]).is_empty(), "not charged");
    assert!(!spoilt(jns, &[0x90, 0xe9]).is_empty(), "never used up");
    assert!(!spoilt(jns, &[0x0f, 0x88]).is_empty(), "used up from the first");
    assert!(!spoilt(jne, &[0x0f, 0x84]).is_empty(), "off where it is on");
    // What the budget becomes, and of which context.
    // `mov gs:[BUDGET], r32`, not the one of a number.
    let stores = |&place: &usize| rewritten[behind + place - 2] == 0x89;
    let refill = behind + at(&rewritten[behind..], REFILL).into_iter().find(stores).expect("a refill");
    assert!(!spoilt(refill + 1, &[0x2c]).is_empty(), "another word of the area");
    let quantum = behind + rewritten[behind..].iter().position(|&byte| byte == 0xa0).expect("QUANTUM");
    assert!(quantum < refill, "loaded before");
    // In a context that is alone, nothing is saved: `cmp N, S; je past`.
    let alone = quantum - 9 + at(&rewritten[quantum - 9..quantum], &[0x0f, 0x84])[0];
    assert!(!spoilt(alone, &[0x66, 0x0f, 0x1f, 0x44, 0, 0]).is_empty(), "saved there");
    assert!(!spoilt(quantum, &[0xa8]).is_empty(), "another register's slot");
}
