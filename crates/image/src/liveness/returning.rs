//! Which functions may return at all: by their own blocks, and by what they call or go to in place
//! of returning.

use super::Work;
use super::step::Kind;
use crate::code::groups::Exit;
use crate::code::insn::Flow;
use crate::code::never_returns::is_known_by_name;
use crate::elf::imports::Import;

/// All that matters of a group.
pub(super) struct Ways {
    entries: Vec<u32>,
    blocks: Vec<Way>,
}

/// A block of it.
#[derive(Default)]
struct Way {
    /// Units that are called in it.
    calls: Vec<u32>,
    /// Control never comes to its end.
    stops: bool,
    returns: bool,
    /// Units that it may go to in place of returning.
    tails: Vec<u32>,
    next: Vec<u32>,
}

impl Ways {
    /// Whether there is a way to a return, if so much is known of units.
    pub(super) fn may_return(&self, returns: &[bool]) -> bool {
        let mut seen = vec![false; self.blocks.len()];
        let mut work = self.entries.clone();
        while let Some(index) = work.pop() {
            if std::mem::replace(&mut seen[index as usize], true) {
                continue;
            }
            let block = &self.blocks[index as usize];
            if block.stops || block.calls.iter().any(|&unit| !returns[unit as usize]) {
                continue;
            }
            if block.returns || block.tails.iter().any(|&unit| returns[unit as usize]) {
                return true;
            }
            work.extend(&block.next);
        }
        false
    }
}

impl Work<'_, '_> {
    pub(super) fn ways(&self) -> Ways {
        let entered = &self.view.entered;
        let count = self.group.blocks.len() as u32;
        let entries =
            (0..count).filter(|&block| entered[block as usize] && !self.is_behind_an_end(block)).collect();
        Ways { entries, blocks: (0..self.group.blocks.len()).map(|block| self.way(block)).collect() }
    }

    /// Whether nothing leads there but a call that never returns.
    fn is_behind_an_end(&self, index: u32) -> bool {
        let block = &self.group.blocks[index as usize];
        let member = block.member as usize;
        let before = block.first.checked_sub(1).filter(|_| !block.is_entry);
        before.is_some_and(|before| {
            let last = self.insn(member, before as usize);
            last.never_returns && last.end() == self.insn(member, block.first as usize).at
        })
    }

    fn way(&self, index: usize) -> Way {
        let block = &self.group.blocks[index];
        let member = block.member as usize;
        let mut way = Way { next: block.next.clone(), ..Way::default() };
        for at in block.first as usize..block.end as usize {
            let insn = self.insn(member, at);
            way.stops |= insn.never_returns || insn.flow == Flow::Stop;
            way.returns |= insn.flow == Flow::Return;
            if let Kind::Local(unit) = self.steps(member)[at].kind {
                way.calls.push(unit);
            }
        }
        for exit in &block.exits {
            let Exit::To(target) = *exit else {
                way.returns = true;
                continue;
            };
            match (self.module.imports.stub(target), self.known_unit(target)) {
                (Some(Import::Named(name)), _) => way.returns |= !is_known_by_name(name),
                (None, Some(unit)) => way.tails.push(unit),
                _ => way.returns = true,
            }
        }
        way
    }
}
