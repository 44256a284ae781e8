//! What a function reads of what its caller left in registers.

use super::step::{Kind, NumberedStep, StepEffect};
use crate::code::groups::Group;
use crate::code::regs::{RAX, RDI, RSI, RSP, RegSet, abi};
use crate::module::Module;

/// In Microsoft's convention and in clang's `regcall` these two pass nothing (in `regcall`: unless
/// rax does).
pub(super) const PASSED_BY_THE_ABI_ALONE: RegSet = RegSet(1 << RDI | 1 << RSI);

/// What is read that was passed, as far as is known.
#[derive(Clone, Copy, Default)]
pub(super) struct ReadOnEntry {
    pub(super) reads: RegSet,
    /// The same, put on the stack and got from there or not.
    pub(super) touches: RegSet,
}

impl ReadOnEntry {
    /// Whether it may be of clang's `regcall`.
    pub(super) fn may_be_regcall(self) -> bool {
        !self.touches.meets(PASSED_BY_THE_ABI_ALONE) || self.touches.meets(RegSet::general(RAX))
    }
}

/// The unit by which a group is called, if all others are parts of it.
pub(super) fn only_function(module: &Module<'_>, units: &[u32]) -> Option<u32> {
    let mut whole = units.iter().copied().filter(|&unit| !module.units[unit as usize].is_part);
    whole.next().filter(|_| whole.next().is_none())
}

/// What is read of what a caller left in registers. Of several functions in one, nothing is told.
pub(super) fn read_on_entry(
    module: &Module<'_>,
    group: &Group<'_>,
    steps: &[Vec<NumberedStep>],
    restored: RegSet,
    effects: &[StepEffect],
) -> ReadOnEntry {
    let start = only_function(module, group.units).map(|unit| module.units[unit as usize].start);
    let Some(first) = start.and_then(|start| group.block_at(module, start)) else {
        return ReadOnEntry { reads: RegSet::EMPTY, touches: RegSet::ALL };
    };
    let blocks = &group.blocks;
    // Nothing that a caller left is known to be there where the state is empty.
    let mut entry = vec![RegSet::EMPTY; blocks.len()];
    entry[first as usize] = RegSet::ALL;
    let mut work = vec![first];
    let (mut read, mut saved) = (RegSet::EMPTY, RegSet::EMPTY);
    while let Some(index) = work.pop() {
        let block = &blocks[index as usize];
        let mut state = entry[index as usize];
        for step in &steps[block.member as usize][block.first as usize..block.end as usize] {
            let effect = &effects[step.effect as usize];
            // What is pushed may be anything, to reserve space.
            let pushes = effect.writes.contains(RegSet::general(RSP));
            let saves = if pushes { effect.saves } else { RegSet::EMPTY };
            if effect.reads != RegSet::ALL {
                read |= (effect.reads - saves) & state;
            }
            state = state - effect.writes;
            if !matches!(step.kind, Kind::Plain | Kind::Return) {
                state = state - abi::CLOBBERED;
            }
        }
        for &next in &block.next {
            if !entry[next as usize].contains(state) {
                entry[next as usize] |= state;
                work.push(next);
            }
        }
    }
    for step in steps.iter().flatten() {
        saved |= effects[step.effect as usize].saves;
    }
    ReadOnEntry { reads: read - (saved & restored), touches: read }
}
