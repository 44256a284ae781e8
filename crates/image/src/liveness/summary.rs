//! What callers know of a function.

use crate::code::regs::RegSet;

/// What a caller must know about a function, at its first instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// May be read before it is overwritten, by it or what it calls.
    pub reads: RegSet,
    /// Overwritten on every way to a return.
    pub overwrites: RegSet,
    /// May be given a meaning, by it or what it calls.
    pub(super) may_write: RegSet,
    /// The same, as far as it is seen: an unknown function leaves what the ABI says, and what the
    /// module passes besides.
    pub(super) may_hand_on: RegSet,
    /// Surely read on some way, as far as was seen: evidence of unusual conventions.
    pub(super) seen_read: RegSet,
}

impl Summary {
    pub(super) const HOPED: Self = Self {
        reads: RegSet::EMPTY,
        overwrites: RegSet::ALL,
        may_write: RegSet::EMPTY,
        may_hand_on: RegSet::EMPTY,
        seen_read: RegSet::EMPTY,
    };
    pub(super) const UNKNOWN: Self = Self {
        reads: RegSet::ALL,
        overwrites: RegSet::EMPTY,
        may_write: RegSet::ALL,
        may_hand_on: RegSet::ALL,
        seen_read: RegSet::EMPTY,
    };
}
