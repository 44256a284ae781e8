//! An instruction as the passes see it: what kind it is of, and what it does to registers.

use crate::code::prototypes::Convention;
use crate::code::regs::RegSet;
use std::hash::{Hash, Hasher};

/// The registers that a step reads, certainly overwrites, may write, and puts on the stack.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct StepEffect {
    pub(super) reads: RegSet,
    pub(super) kills: RegSet,
    pub(super) writes: RegSet,
    pub(super) saves: RegSet,
}

/// An instruction, its effect by number.
#[derive(Clone, Copy)]
pub(super) struct NumberedStep {
    pub(super) kind: Kind,
    pub(super) effect: u32,
    /// The general registers that an unwinder needs there.
    pub(super) needed: u16,
}

/// A call of another module or by a pointer.
#[derive(Clone, Copy)]
pub(super) struct Foreign {
    pub(super) by: Convention,
    /// What else it may be passed something in, where nobody knows of which convention what is
    /// called is.
    pub(super) by_another: Option<RegSet>,
    /// Seen to be kept over it all the same.
    pub(super) keeps: RegSet,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Return,
    /// May be anything: reads what is unknown.
    Unknown,
    /// A call of another module or by a pointer, by its number.
    Foreign(u32),
    /// A call of this unit.
    Local(u32),
}

pub(super) const NO_PAD: u32 = u32::MAX;
/// A landing pad of which no block is known: anything may be read there.
pub(super) const UNKNOWN_PAD: u32 = NO_PAD - 1;

impl Hash for StepEffect {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let rotated = |set: RegSet, by: u32| (set.0 as u64 ^ (set.0 >> 64) as u64).rotate_left(by);
        let Self { reads, kills, writes, saves } = *self;
        state.write_u64(rotated(reads, 0) ^ rotated(kills, 19) ^ rotated(writes, 37) ^ rotated(saves, 53));
    }
}

/// What stands in lists of its own for each of a row of things, without an allocation for each.
#[derive(Default)]
pub(super) struct Adjacent {
    first: Vec<u32>,
    all: Vec<u32>,
}

impl Adjacent {
    /// From pairs of a place and its value, for `count` places.
    pub(super) fn of(count: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut first = vec![0u32; count + 1];
        for (at, _) in pairs.clone() {
            first[at as usize + 1] += 1;
        }
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        let mut next = first.clone();
        let mut all = vec![0; first[count] as usize];
        for (at, what) in pairs {
            let slot = &mut next[at as usize];
            all[*slot as usize] = what;
            *slot += 1;
        }
        Self { first, all }
    }

    pub(super) fn of_one(&self, at: usize) -> &[u32] {
        &self.all[self.first[at] as usize..self.first[at + 1] as usize]
    }
}
