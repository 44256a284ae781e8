//! What a function surely overwrites, and what it may give back as it found it.

use super::Work;
use super::runs::Run;
use super::step::Kind;
use super::work::Transfer;
use crate::code::insn::Flow;
use crate::code::regs::{RegSet, abi};

impl Work<'_, '_> {
    /// What is overwritten on every way from the entries to a return; and what may be given back as
    /// it was found: put on the stack first, and got from there.
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
            let numbers = self.view.runs.of_block(index);
            let mut saves = self.view.runs.saves_in(numbers.clone()).iter().peekable();
            let returns = self.insn(member, block.end as usize - 1).flow == Flow::Return;
            let ends = returns || !block.exits.is_empty();
            if !ends && saves.len() == 0 {
                continue;
            }
            let mut state = entry[index];
            for number in numbers {
                let run = &self.view.runs.all()[number];
                if run.is_entered_unseen {
                    state = RegSet::EMPTY;
                }
                if let Some((_, saves)) = saves.next_if(|(of, _)| *of as usize == number) {
                    saved |= *saves - state;
                }
                state |= self.overwritten_by(member, run);
            }
            if ends {
                at_return = at_return & state;
            }
        }
        // Nothing that must come back unchanged, or may, is taken for overwritten.
        let given_back = saved & self.view.restored;
        (at_return - abi::CALLEE_SAVED - given_back, given_back)
    }

    /// What a block does to what is overwritten.
    fn overwritten_in(&self, block: usize) -> Transfer {
        let member = self.group.blocks[block].member as usize;
        let mut whole = Transfer::NOTHING;
        for run in &self.view.runs.all()[self.view.runs.of_block(block)] {
            if run.is_entered_unseen {
                // Nothing is known where undecoded bytes may lead to.
                whole = Transfer { adds: RegSet::EMPTY, keeps: RegSet::EMPTY };
            }
            whole.adds |= self.overwritten_by(member, run);
        }
        whole
    }

    fn overwritten_by(&self, member: usize, run: &Run) -> RegSet {
        if run.is_plain {
            return run.kills;
        }
        match self.steps(member)[run.first as usize].kind {
            Kind::Local(unit) if !self.overlaps(member) => self.summary(unit).overwrites,
            _ => RegSet::EMPTY,
        }
    }
}
