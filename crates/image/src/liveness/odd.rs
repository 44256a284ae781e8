//! Registers that code reads right behind calls by pointers, or of what jumps to pointers, though
//! the ABI leaves nothing there: results of another convention, or registers that it preserves.
//! Functions that may be called by a pointer leave something in them, or do not change them.
//!
//! Further on such readings tell nothing: compilers merge ways on which a register holds something
//! with others, and never look.

use super::Work;
use super::step::Kind;
use super::views::GroupViews;
use crate::code::insn::Flow;
use crate::code::regs::{RSP, RegSet, abi};
use crate::elf::imports::Import;
use crate::module::Module;
use rayon::prelude::*;

/// In which registers, all over a module.
pub(super) fn of(views: &GroupViews<'_, '_>, summaries: &[super::Summary]) -> RegSet {
    let GroupViews { module, groups, .. } = *views;
    let jumps = jump_to_pointers(module);
    let all = groups
        .members
        .par_iter()
        .enumerate()
        .with_min_len(8)
        .map(|(group, members)| {
            let calls = |&unit: &u32| {
                let decoded = &module.decoded[unit as usize];
                let to = |&call| module.unit_at(call).is_some_and(|unit| jumps[unit]);
                decoded.insns.iter().any(|insn| insn.flow.is_call() && insn.flow != Flow::Call32)
                    || decoded.calls.iter().any(to)
            };
            if !members.iter().any(calls) {
                return RegSet::EMPTY;
            }
            views.with(group, summaries, |work| work.odd(&jumps))
        })
        .reduce(|| RegSet::EMPTY, |a, b| a | b);
    all & (abi::CLOBBERED - abi::RETURNED)
}

/// For each unit, whether it, or what it goes to in place of returning, may leave for where nobody
/// knows.
fn jump_to_pointers(module: &Module<'_>) -> Vec<bool> {
    let mut jumps: Vec<bool> = module.decoded.iter().map(|decoded| !decoded.open_jumps.is_empty()).collect();
    loop {
        let leads = |unit: &usize| {
            let to = |&to| module.unit_at(to).is_some_and(|unit| jumps[unit]);
            !jumps[*unit] && module.decoded[*unit].jumps_out.iter().any(to)
        };
        let more: Vec<usize> = (0..jumps.len()).filter(leads).collect();
        if more.is_empty() {
            return jumps;
        }
        for unit in more {
            jumps[unit] = true;
        }
    }
}

impl Work<'_, '_> {
    fn odd(&self, jumps: &[bool]) -> RegSet {
        let mut odd = RegSet::EMPTY;
        for (member, steps) in self.view.steps.iter().enumerate() {
            let unit = self.group.units[member] as usize;
            let (start, code) = (self.module.units[unit].start, self.module.code(unit));
            for (index, step) in steps.iter().enumerate() {
                let insn = self.insn(member, index);
                let slot = || insn.rip_target(start, code).and_then(|slot| self.module.imports.slot(slot));
                let stub = || insn.target(start, code).and_then(|to| self.module.imports.stub(to));
                let by_pointer = match step.kind {
                    Kind::Local(callee) => jumps[callee as usize],
                    Kind::Foreign(_) => {
                        let import = if insn.flow == Flow::Call32 { stub() } else { slot() };
                        !matches!(import, Some(Import::Named(_)))
                    }
                    _ => false,
                };
                if by_pointer {
                    odd |= self.read_at_once(member, index + 1);
                }
            }
        }
        odd
    }

    /// What is read from an instruction on, as far as nothing branches, before it is written.
    fn read_at_once(&self, member: usize, first: usize) -> RegSet {
        let (mut read, mut written) = (RegSet::EMPTY, RegSet::EMPTY);
        for index in first..self.steps(member).len() {
            let step = self.effect(self.steps(member)[index]);
            // What is pushed may be anything, to reserve space.
            let pushes = !step.saves.is_empty() && step.writes.contains(RegSet::general(RSP));
            if step.reads != RegSet::ALL && !pushes {
                read |= step.reads - written;
            }
            written |= step.writes;
            if self.insn(member, index).flow != Flow::Next {
                break;
            }
        }
        read
    }
}
