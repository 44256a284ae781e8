//! Instructions that stand between two accesses and take up space in the core.
//!
//! What runs out first decides where the cliff is, so each kind says which part it takes an entry
//! of. They depend on nothing that is slow, so schedulers stay empty.
//!
//! | | re-order buffer | integer registers | vector registers | loads | stores | branches |
//! |---|---|---|---|---|---|---|
//! | Skylake | 224 | 180 | 168 | 72 | 56 | 48 |
//! | Golden Cove | 512 | 280 | 332 | 192 | 114 | 128 |
//! | Zen 4 | 320 | 224 | 192 | 88 | 64 | 118 |
//!
//! (Files also hold the architectural state, so some 20 to 40 entries fewer can be used. On Intel a
//! result that is flags only takes an integer register; on AMD flags have a file of their own.)
//!
//! The sizes are published ones; only Zen 4 was tried. No-operations take the re-order buffer only,
//! and on Zen 4 the shorter the less of it: cliffs were seen there as if four of up to 3 bytes
//! shared an entry, two of 4 bytes, and one of 8 or 9 bytes had it for itself; those of 5 to 7
//! bytes follow no such rule.
//!
//! To add a kind: a variant of [`Filler`], a line in [`one`], and its shape in the tests.

use crate::error::in_range;
use crate::{Filler, KernelError};
use iced_x86::code_asm::{
    AsmRegister32, AsmRegister64, AsmRegisterXmm, CodeAssembler, ptr, r10, r10d, r11, r11d, r12, r12d, r13,
    r13d, r14, r14d, r15, r15d, rbp, rbx, rsp, xmm0, xmm1, xmm2, xmm3, xmm4, xmm5, xmm6, xmm7,
};

const MAX_GAP: u32 = 4096;

/// Words in each of the two parts of the frame: loads read the first, stores write the second, so
/// that none waits for another.
const WORDS: u32 = 32;
const FRAME: i32 = 2 * 8 * WORDS as i32 + 64;

/// Where results go, in turn, so that neighbours are independent.
const INTEGERS: [AsmRegister64; 6] = [r10, r11, r12, r13, r14, r15];
const INTEGERS_32: [AsmRegister32; 6] = [r10d, r11d, r12d, r13d, r14d, r15d];
const VECTORS: [AsmRegisterXmm; 7] = [xmm1, xmm2, xmm3, xmm4, xmm5, xmm6, xmm7];

/// A third integer results, a third vector results, a sixth stores and a sixth branches not taken.
/// With every re-order buffer above full, that is at most four fifths of any other part, but for
/// Zen 4's 64 stores, of which 53: on Skylake 75 integer and 75 vector registers, 37 stores and
/// branches for 224; on Golden Cove 171, 171, 85 and 85 for 512; on Zen 4 107, 107, 53 and 53 for
/// 320.
///
/// The order matters, and was chosen among many on a Zen 4, whose 320 entries were known: that the
/// mix finds 316 there shows that nothing else runs out earlier, not that the figure is independent
/// of it. Orders with neighbours that may share an entry (a comparison and a branch; a move of a
/// constant and a `test`) gave more than 320, orders with all flag results at even places gave
/// fewer, as if flags came from two banks in turn. These are readings of cliffs, not facts about
/// the core. Branches that are not taken and no-operations of 8 bytes, with no order to choose,
/// gave 318 and 317.
const MIX: [Filler; 6] = {
    use Filler::{Branch as B, IntAdd as I, Store as S, VectorAdd as V};
    [I, V, S, I, V, B]
};

/// Runs `body` with what fillers need: `rbx`, `rbp`, `r12`-`r15` saved, `rbp` at a frame of scratch
/// memory. The body must leave `rbp` alone and expect `r10`-`r15` and vector registers to change;
/// it may use `rbx`.
pub(crate) fn framed(
    a: &mut CodeAssembler,
    body: impl FnOnce(&mut CodeAssembler) -> Result<(), KernelError>,
) -> Result<(), KernelError> {
    crate::emit::saving(a, &[rbx, rbp, r12, r13, r14, r15], |a| {
        a.sub(rsp, FRAME)?;
        a.lea(rbp, ptr(rsp + 63))?;
        a.and(rbp, -64)?;
        body(a)?;
        a.add(rsp, FRAME)?;
        Ok(())
    })
}

/// `gap` fillers, one instruction each. The carry flag must be clear, as after `test`, `or` or a
/// chain of `mov` and `dec` since; it stays so for the kinds that have branches.
pub(crate) fn fill(a: &mut CodeAssembler, filler: Filler, gap: u32) -> Result<(), KernelError> {
    in_range("gap", gap, 0, MAX_GAP)?;
    if let Filler::Nop { bytes } = filler {
        in_range("bytes of a nop", bytes, 1, NOPS.len() as u32)?;
    }
    for i in 0..gap {
        match filler {
            Filler::Alternating if i % 2 == 0 => integer_without_flags(a, i)?,
            Filler::Alternating => one(a, Filler::VectorAdd, i)?,
            Filler::Mixed => match MIX[i as usize % MIX.len()] {
                // Not `add`, which would set the carry flag that the branches look at; `or` clears
                // it.
                Filler::IntAdd => a.or(INTEGERS[i as usize % INTEGERS.len()], rbp)?,
                kind => one(a, kind, i)?,
            },
            kind => one(a, kind, i)?,
        }
    }
    Ok(())
}

/// An integer register and nothing else. At every other place adds would not do: on Zen 4 they
/// would find their bank of flags (see [`MIX`]) empty after 117. Nor would `lea`: with two
/// registers it takes two entries there.
fn integer_without_flags(a: &mut CodeAssembler, i: u32) -> Result<(), KernelError> {
    Ok(a.mov(INTEGERS_32[i as usize % INTEGERS_32.len()], 1)?)
}

fn one(a: &mut CodeAssembler, filler: Filler, i: u32) -> Result<(), KernelError> {
    let integer = INTEGERS[i as usize % INTEGERS.len()];
    let word = i32::try_from(8 * (i % WORDS)).expect("small");
    match filler {
        Filler::Nop { bytes } => a.db(NOPS[bytes as usize - 1])?,
        Filler::IntAdd => a.add(integer, rbp)?,
        Filler::VectorAdd => a.paddd(VECTORS[i as usize % VECTORS.len()], xmm0)?,
        Filler::Load => a.mov(integer, ptr(rbp + word))?,
        Filler::Store => a.mov(ptr(rbp + (8 * WORDS as i32 + word)), rbp)?,
        Filler::Cmp => a.cmp(rbp, 1)?,
        Filler::Branch => a.db(&[0x72, 0x00])?, // jc to the next instruction
        Filler::TakenBranch => a.db(&[0xeb, 0x00])?, // jmp to the next instruction
        Filler::Alternating | Filler::Mixed => unreachable!("made of the others"),
    }
    Ok(())
}

/// The forms that both vendors' optimisation manuals recommend.
const NOPS: [&[u8]; 9] = [
    &[0x90],
    &[0x66, 0x90],
    &[0x0f, 0x1f, 0x00],
    &[0x0f, 0x1f, 0x40, 0x00],
    &[0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00],
    &[0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00],
    &[0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
    &[0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
];
