//! General registers of inserted code: their numbers, and which of them is best used for what.

use image::code::regs::RegSet;

/// A general register by its number in instructions.
pub(crate) type Register = u32;

pub(crate) const RAX: Register = 0;
pub(crate) const RCX: Register = 1;
pub(crate) const RSP: Register = 4;

/// Registers in the order in which they are best used: the context comes back in `rax`, and the
/// last ones take longer instructions.
const PREFERRED: [Register; 15] = [0, 1, 2, 6, 7, 8, 9, 10, 11, 3, 5, 14, 15, 13, 12];

/// Registers that may hold the context throughout a loop: not `rax`, in which it comes back, and in
/// which the general form works.
pub(crate) fn base_candidates() -> impl Iterator<Item = Register> {
    PREFERRED.into_iter().filter(|&register| register != RAX)
}

/// A register that is dead, but for those in `not`.
pub(crate) fn dead_register(live: RegSet, not: RegSet) -> Option<Register> {
    PREFERRED.into_iter().find(|&register| !(live | not).contains(RegSet::general(register)))
}

pub(crate) fn flags_live(live: RegSet) -> bool {
    live.meets(RegSet::ARITHMETIC_FLAGS)
}
