//! What a function surely overwrites, and what it may give back as it found it.

use super::{Kind, Step, Work};
use crate::insn::Flow;
use crate::regs::{RegSet, abi};

impl Work<'_, '_> {
    /// What is overwritten on every way from the entries to a return; and what may be given back as it was found: put on
    /// the stack first, and got from there.
    pub(super) fn overwrites(&self) -> (RegSet, RegSet) {
        let count = self.group.blocks.len();
        let mut entry: Vec<RegSet> =
            self.group.blocks.iter().map(|b| if b.is_entry { RegSet::EMPTY } else { RegSet::ALL }).collect();
        let mut at_return = RegSet::ALL;
        let mut work: Vec<u32> = (0..count as u32).rev().collect();
        let mut queued = vec![true; count];
        while let Some(index) = work.pop() {
            queued[index as usize] = false;
            let block = &self.group.blocks[index as usize];
            let mut state = entry[index as usize];
            for insn in block.first as usize..block.end as usize {
                state |= match self.steps[block.member as usize][insn] {
                    Step { kind: Kind::Local(unit), .. } => self.summary(unit).overwrites,
                    Step { kind: Kind::Plain, kills, .. } => kills,
                    _ => RegSet::EMPTY,
                };
            }
            for &next in &block.next {
                let joined = entry[next as usize] & state;
                if joined != entry[next as usize] {
                    entry[next as usize] = joined;
                    if !std::mem::replace(&mut queued[next as usize], true) {
                        work.push(next);
                    }
                }
            }
        }
        let mut saved = RegSet::EMPTY;
        for (index, block) in self.group.blocks.iter().enumerate() {
            let mut state = entry[index];
            for insn in block.first as usize..block.end as usize {
                let step = self.steps[block.member as usize][insn];
                saved |= step.saves - state;
                state |= match step {
                    Step { kind: Kind::Local(unit), .. } => self.summary(unit).overwrites,
                    Step { kind: Kind::Plain, kills, .. } => kills,
                    _ => RegSet::EMPTY,
                };
            }
            let last = block.end as usize - 1;
            let returns = self.insn(block.member as usize, last).flow == Flow::Return;
            if returns || !block.exits.is_empty() {
                at_return = at_return & state;
            }
        }
        // Nothing that must come back unchanged, or may, is taken for overwritten.
        let given_back = saved & self.restored;
        (at_return - abi::CALLEE_SAVED - given_back, given_back)
    }
}
