//! What a function surely overwrites, and what it may give back as it found it.

use super::Work;
use super::view::{Kind, NumberedStep};
use super::work::Transfer;
use crate::code::groups::Group;
use crate::code::insn::Flow;
use crate::code::regs::{RegSet, abi};

/// Which blocks may be come to with nothing overwritten: entries, and those that no known way leads to, as the targets
/// of jumps that are not relied on.
pub(super) fn entered(group: &Group<'_>) -> Vec<bool> {
    let blocks = &group.blocks;
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

impl Work<'_, '_> {
    /// What is overwritten on every way from the entries to a return; and what may be given back as it was found: put on
    /// the stack first, and got from there.
    pub(super) fn overwrites(&self) -> (RegSet, RegSet) {
        let blocks = &self.group.blocks;
        let transfers: Vec<Transfer> = (0..blocks.len()).map(|block| self.overwritten_in(block)).collect();
        let first = |&entered: &bool| if entered { RegSet::EMPTY } else { RegSet::ALL };
        let mut entry: Vec<RegSet> = self.view.entered.iter().map(first).collect();
        let mut work: Vec<u32> = (0..blocks.len() as u32).rev().collect();
        let mut queued = vec![true; blocks.len()];
        while let Some(index) = work.pop() {
            queued[index as usize] = false;
            let state = transfers[index as usize].apply(entry[index as usize]);
            for &next in &blocks[index as usize].next {
                let joined = entry[next as usize] & state;
                if joined != entry[next as usize] {
                    entry[next as usize] = joined;
                    if !std::mem::replace(&mut queued[next as usize], true) {
                        work.push(next);
                    }
                }
            }
        }
        let mut at_return = RegSet::ALL;
        let mut saved = RegSet::EMPTY;
        for (index, block) in blocks.iter().enumerate() {
            let member = block.member as usize;
            let mut state = entry[index];
            for insn in block.first as usize..block.end as usize {
                let step = self.steps(member)[insn];
                state = self.unless_entered_unseen(member, insn, state);
                saved |= self.effect(step).saves - state;
                state |= self.overwritten_by(member, step);
            }
            let last = block.end as usize - 1;
            let returns = self.insn(member, last).flow == Flow::Return;
            if returns || !block.exits.is_empty() {
                at_return = at_return & state;
            }
        }
        // Nothing that must come back unchanged, or may, is taken for overwritten.
        let given_back = saved & self.view.restored;
        (at_return - abi::CALLEE_SAVED - given_back, given_back)
    }

    /// What a block does to what is overwritten.
    fn overwritten_in(&self, block: usize) -> Transfer {
        let block = &self.group.blocks[block];
        let member = block.member as usize;
        let mut whole = Transfer::NOTHING;
        for insn in block.first as usize..block.end as usize {
            if self.unless_entered_unseen(member, insn, RegSet::ALL).is_empty() {
                whole = Transfer { adds: RegSet::EMPTY, keeps: RegSet::EMPTY };
            }
            whole.adds |= self.overwritten_by(member, self.steps(member)[insn]);
        }
        whole
    }

    /// Nothing is known where undecoded bytes may lead to.
    fn unless_entered_unseen(&self, member: usize, index: usize, known: RegSet) -> RegSet {
        let unseen = &self.view.entered_unseen[member];
        if unseen.is_empty() || unseen.binary_search(&(index as u32)).is_err() {
            known
        } else {
            RegSet::EMPTY
        }
    }

    fn overwritten_by(&self, member: usize, step: NumberedStep) -> RegSet {
        match step.kind {
            _ if self.overlaps(member) => RegSet::EMPTY,
            Kind::Local(unit) => self.summary(unit).overwrites,
            Kind::Plain => self.effect(step).kills,
            _ => RegSet::EMPTY,
        }
    }
}
