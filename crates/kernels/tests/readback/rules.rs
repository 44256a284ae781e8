//! What holds for every kernel, whatever it measures.

use crate::grid;
use crate::listing::{Line, Listing};
use gleaner_kernels::{Fence, STACK_BYTES, Spec, assemble};
use yaxpeax_x86::long_mode::{Opcode, Operand, RegSpec};

/// All that kernels are made of. Neither calls nor system calls nor string instructions nor
/// anything that changes modes.
const ALLOWED: &[&str] = &[
    "add",
    "and",
    "cmp",
    "cpuid",
    "dec",
    "imul",
    "inc",
    "jb",
    "jmp",
    "jnz",
    "jz",
    "lahf",
    "lea",
    "lfence",
    "mfence",
    "mov",
    "movzx",
    "nop",
    "or",
    "pop",
    "push",
    "rdtsc",
    "rdtscp",
    "ret",
    "sahf",
    "seto",
    "sfence",
    "shl",
    "sub",
    "test",
    "xor",
    // vectors
    "addpd",
    "movaps",
    "movdqa",
    "movdqu",
    "movntdq",
    "movq",
    "movsd",
    "mulpd",
    "paddd",
    "paddq",
    "punpcklqdq",
    "pxor",
    "vaddpd",
    "vbroadcastsd",
    "vmovdqa",
    "vmovdqa64",
    "vmovdqu",
    "vmovdqu64",
    "vmovntdq",
    "vmovupd",
    "vmulpd",
    "vpaddq",
    "vpbroadcastq",
    "vpxor",
    "vpxorq",
    "vxorpd",
    "vzeroupper",
    "xorpd",
];

#[test]
fn every_kernel_keeps_the_rules() {
    for spec in grid::everything() {
        let kernel = assemble(&spec).unwrap_or_else(|e| panic!("{spec:?}: {e}"));
        assert_eq!(kernel.spec, spec);
        let listing = Listing::of(&kernel);
        only_allowed_instructions(&spec, &listing);
        branches_stay_inside(&spec, &listing);
        one_ret_at_the_end(&spec, &listing);
        callers_registers_come_back(&spec, &listing);
        upper_halves_are_clean(&spec, &listing);
    }
}

fn only_allowed_instructions(spec: &Spec, listing: &Listing) {
    let may_cpuid =
        matches!(spec, Spec::Burst { fence: Fence::Cpuid, .. } | Spec::Sequence { fence: Fence::Cpuid, .. });
    for line in &listing.lines {
        let text = line.text.strip_prefix("lock ").unwrap_or(&line.text);
        let mnemonic = text.split(' ').next().expect("an instruction has a name");
        assert!(ALLOWED.contains(&mnemonic), "{spec:?}: {}", line.text);
        assert!(line.opcode() != Opcode::CPUID || may_cpuid, "{spec:?}: cpuid");
        let prefixes = line.instruction.prefixes;
        assert!(!prefixes.fs() && !prefixes.gs(), "{spec:?}: {}", line.text);
        for operand in line.operands() {
            let absolute = matches!(operand, Operand::AbsoluteU32 { .. } | Operand::AbsoluteU64 { .. });
            assert!(!absolute, "{spec:?}: {}", line.text);
        }
    }
}

fn branches_stay_inside(spec: &Spec, listing: &Listing) {
    for line in &listing.lines {
        if line.is_branch() {
            let indirect = matches!(spec, Spec::Switch { .. }) && line.text == "jmp qword [r15 - 0x30]";
            assert!(indirect || line.target().is_some(), "{spec:?}: {}", line.text);
        }
        for target in [line.target(), line.rip_target()].into_iter().flatten() {
            let inside = usize::try_from(target).is_ok_and(|target| listing.starts.contains(&target));
            assert!(inside, "{spec:?}: {} at {:#x} goes to {target:#x}", line.text, line.at);
        }
    }
}

fn one_ret_at_the_end(spec: &Spec, listing: &Listing) {
    assert_eq!(listing.lines.last().map(Line::opcode), Some(Opcode::RETURN), "{spec:?}");
    assert_eq!(listing.count_if(|line| line.opcode() == Opcode::RETURN), 1, "{spec:?}");
}

/// A kernel is: pushes, a body that leaves the stack where it was, the same registers popped in
/// reverse, `ret`. Then what the body overwrites must be among the pushed, and no branch may pass
/// over either.
fn callers_registers_come_back(spec: &Spec, listing: &Listing) {
    let pushed: Vec<&str> = listing.lines.iter().map_while(|line| line.text.strip_prefix("push ")).collect();
    let end = listing.lines.len() - 1;
    let mut popped: Vec<&str> =
        listing.lines[..end].iter().rev().map_while(|line| line.text.strip_prefix("pop ")).collect();
    let body = &listing.lines[pushed.len()..end - popped.len()];
    // The pops were read backwards, so they are in the order of the pushes already.
    assert_eq!(pushed, popped, "{spec:?}");
    popped.sort_unstable();
    popped.dedup();
    assert_eq!(popped.len(), pushed.len(), "{spec:?}: a register is pushed twice");

    let first_pop = listing.lines[end - pushed.len()].at;
    let (mut depth, mut deepest) = (0, 0);
    for line in body {
        assert!(!matches!(line.opcode(), Opcode::PUSH | Opcode::POP), "{spec:?}: {} inside", line.text);
        if let Some(register) = line.overwrites_saved() {
            assert!(pushed.contains(&register), "{spec:?}: {} loses {register}", line.text);
        }
        if let Some(target) = line.target() {
            let target = usize::try_from(target).expect("checked before");
            assert!((body[0].at..=first_pop).contains(&target), "{spec:?}: {} leaves the body", line.text);
        }
        match (line.opcode(), line.instruction.operand(0), line.instruction.operand(1)) {
            (Opcode::SUB, Operand::Register { reg }, by) if reg == RegSpec::rsp() => depth += immediate(by),
            (Opcode::ADD, Operand::Register { reg }, by) if reg == RegSpec::rsp() => depth -= immediate(by),
            (Opcode::CMP | Opcode::TEST, ..) => {}
            (_, Operand::Register { reg }, _) if reg == RegSpec::rsp() => {
                assert!(matches!(spec, Spec::Switch { .. }), "{spec:?}: {}", line.text);
            }
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    assert_eq!(depth, 0, "{spec:?}");
    assert!(8 * pushed.len() + deepest as usize <= STACK_BYTES, "{spec:?}");
}

fn immediate(operand: Operand) -> i64 {
    match operand {
        Operand::ImmediateI8 { imm } => imm.into(),
        Operand::ImmediateI32 { imm } => imm.into(),
        Operand::ImmediateI64 { imm } => imm,
        other => panic!("the stack pointer moves by {other:?}"),
    }
}

fn upper_halves_are_clean(spec: &Spec, listing: &Listing) {
    let is_wide = |line: &Line| line.text.contains("ymm") || line.text.contains("zmm");
    let last_wide = listing.lines.iter().rposition(is_wide);
    let cleaned = listing.lines.iter().rposition(|line| line.opcode() == Opcode::VZEROUPPER);
    assert_eq!(last_wide.is_some(), cleaned.is_some(), "{spec:?}");
    assert!(last_wide <= cleaned, "{spec:?}");
    if let Some(cleaned) = cleaned {
        let after = listing.lines[cleaned].at;
        for line in &listing.lines[..cleaned] {
            assert!(line.target().is_none_or(|target| target <= after as i64), "{spec:?}: {}", line.text);
        }
    }
}
