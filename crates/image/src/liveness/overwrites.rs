//! What a function surely overwrites, and what it may give back as it found it.

use super::{Kind, Step, Work};
use crate::code::insn::Flow;
use crate::code::regs::{RegSet, abi};
use units::Svma;

impl Work<'_, '_> {
    /// Which blocks may be come to with nothing overwritten: entries, and those that no known way leads to, as the targets
    /// of jumps that are not relied on.
    pub(super) fn entered(&self) -> Vec<bool> {
        let blocks = &self.group.blocks;
        let mut entered: Vec<bool> = blocks.iter().map(|block| block.is_entry).collect();
        let mut seen = entered.clone();
        let mut work: Vec<u32> = (0..blocks.len() as u32).filter(|&block| seen[block as usize]).collect();
        for first in 0..blocks.len() {
            while let Some(index) = work.pop() {
                for &next in &blocks[index as usize].next {
                    if !std::mem::replace(&mut seen[next as usize], true) {
                        work.push(next);
                    }
                }
            }
            if !seen[first] {
                (seen[first], entered[first]) = (true, true);
                work.push(first as u32);
            }
        }
        entered
    }

    /// What is overwritten on every way from the entries to a return; and what may be given back as it was found: put on
    /// the stack first, and got from there.
    pub(super) fn overwrites(&self) -> (RegSet, RegSet) {
        let count = self.group.blocks.len();
        let mut entry: Vec<RegSet> =
            self.entered().into_iter().map(|b| if b { RegSet::EMPTY } else { RegSet::ALL }).collect();
        let mut at_return = RegSet::ALL;
        let unseen: Vec<&[Svma]> =
            self.group.units.iter().map(|&unit| self.module.unseen_branches_into(unit as usize)).collect();
        let before = |member: u32, index: usize, known: RegSet| {
            let (member, unseen) = (member as usize, unseen[member as usize]);
            if unseen.is_empty() || unseen.binary_search(&self.address(member, index)).is_err() {
                known
            } else {
                RegSet::EMPTY
            }
        };
        let mut work: Vec<u32> = (0..count as u32).rev().collect();
        let mut queued = vec![true; count];
        while let Some(index) = work.pop() {
            queued[index as usize] = false;
            let block = &self.group.blocks[index as usize];
            let mut state = entry[index as usize];
            for insn in block.first as usize..block.end as usize {
                let step = &self.steps[block.member as usize][insn];
                state = before(block.member, insn, state) | self.overwritten_by(block.member as usize, step);
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
                let step = &self.steps[block.member as usize][insn];
                state = before(block.member, insn, state);
                saved |= step.saves - state;
                state |= self.overwritten_by(block.member as usize, step);
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

    fn address(&self, member: usize, index: usize) -> Svma {
        let start = self.module.units[self.group.units[member] as usize].start;
        Svma(start.0 + u64::from(self.insn(member, index).at))
    }

    fn overwritten_by(&self, member: usize, step: &Step) -> RegSet {
        match *step {
            _ if self.overlaps(member) => RegSet::EMPTY,
            Step { kind: Kind::Local(unit), .. } => self.summary(unit).overwrites,
            Step { kind: Kind::Plain, kills, .. } => kills,
            _ => RegSet::EMPTY,
        }
    }
}
