//! What a function may have to leave as it found it, though the ABI lets it change that: for
//! callers of another convention, who are not seen, since they call it by a pointer or from another
//! module.
//!
//! A function that does not touch a register cannot show whether its callers rely on that. But most
//! functions show that they do not have such a convention: they *break* it, by writing something
//! that it keeps and not giving it back from the stack, or by calling a function in view that does;
//! or they *read* what they would not be passed. The conventions:
//!
//! - clang's `preserve_most`, and functions without caller-saved registers: all general registers
//!   are kept, but for those of results. Broken by writing one in which C returns nothing;
//! - `preserve_all`: vectors and masks besides, and likewise broken;
//! - Microsoft's: rsi, rdi and xmm6 to xmm15. No function is passed anything in rsi or rdi there;
//! - clang's `regcall`: xmm8 to xmm15. A function that is passed nothing in rax is passed nothing
//!   in rdi or rsi. One that reads its fourth or fifth argument, and not the first, is not
//!   considered.
//!
//! To add one: its registers, and by what it is ruled out, in [`Evidence::kept`].

use super::read_on_entry::{PASSED_BY_THE_ABI_ALONE, ReadOnEntry, only_function};
use super::returning::Ways;
use super::step::Kind;
use super::views::GroupViews;
use super::{Summary, Work};
use crate::code::groups::{Block, Exit};
use crate::code::regs::{RCX, RegSet, abi};
use rayon::prelude::*;
use units::Svma;

/// Where C returns nothing: rcx, rsi, rdi, r8, r9.
const TEMPORARIES: RegSet = RegSet(1 << RCX | PASSED_BY_THE_ABI_ALONE.0 | 0x300);

/// Bits 0-127 of those from one to another.
const fn lows(first: u32, last: u32) -> RegSet {
    let mut set = RegSet::EMPTY;
    let mut number = first;
    while number <= last {
        set = set.union(RegSet::xmm(number));
        number += 1;
    }
    set
}

/// What a function does with what it found in registers.
#[derive(Clone, Copy, Default)]
struct Evidence {
    /// Changed, and not given back.
    destroyed: RegSet,
    found: ReadOnEntry,
}

impl Evidence {
    fn kept(self) -> RegSet {
        let broken = |kept| self.destroyed.meets(kept);
        let mut kept = RegSet::EMPTY;
        if !broken(TEMPORARIES) {
            kept |= RegSet::GENERAL - abi::CALLEE_SAVED;
            if !broken(lows(4, 15)) {
                kept |= RegSet::VECTORS | RegSet::MASK_REGISTERS;
            }
        }
        let microsofts = PASSED_BY_THE_ABI_ALONE | lows(6, 15);
        if !broken(microsofts) && !self.found.reads.meets(PASSED_BY_THE_ABI_ALONE) {
            kept |= microsofts;
        }
        if !broken(lows(8, 15)) && self.found.may_be_regcall() {
            kept |= lows(8, 15);
        }
        kept
    }
}

/// For each unit, what callers by a pointer or from another module may want back.
pub(super) fn of(views: &GroupViews<'_, '_>, summaries: &[Summary]) -> Vec<RegSet> {
    let GroupViews { module, groups, .. } = *views;
    let of_group = |group: usize| views.with(group, summaries, |work| (work.own(), work.ways()));
    let (own, ways): (Vec<Vec<Own>>, Vec<Ways>) =
        (0..groups.members.len()).into_par_iter().with_min_len(8).map(of_group).unzip();
    let order: Vec<u32> = views.levels.iter().flatten().copied().collect();
    let mut returns: Vec<bool> = module.units.iter().map(|unit| unit.is_part).collect();
    let mut changed = true;
    while changed {
        changed = false;
        for &group in &order {
            let members = &groups.members[group as usize];
            let known = members.iter().all(|&unit| returns[unit as usize]);
            if !known && ways[group as usize].may_return(&returns) {
                for &unit in members {
                    returns[unit as usize] = true;
                }
                changed = true;
            }
        }
    }
    let mut evidence = vec![Evidence::default(); module.units.len()];
    changed = true;
    while changed {
        changed = false;
        for &group in &order {
            for (&unit, own) in groups.members[group as usize].iter().zip(&own[group as usize]) {
                let calls = own.calls.iter().filter(|&&to| returns[to as usize]);
                let calls = calls.fold(own.written, |all, &to| all | evidence[to as usize].destroyed);
                let destroyed = calls - own.given_back;
                let found = Evidence { destroyed, found: own.found };
                changed |= std::mem::replace(&mut evidence[unit as usize], found).destroyed != destroyed;
            }
        }
    }
    evidence.into_iter().map(Evidence::kept).collect()
}

/// A unit by itself.
struct Own {
    written: RegSet,
    given_back: RegSet,
    found: ReadOnEntry,
    /// Units it calls, or goes to in place of returning.
    calls: Vec<u32>,
}

impl Work<'_, '_> {
    /// Of units that are parts of one function, all together.
    fn own(&self) -> Vec<Own> {
        let found = self.view.read_on_entry;
        let given_back = self.overwrites().1 | abi::CALLEE_SAVED;
        let mut own: Vec<Own> = (0..self.group.units.len())
            .map(|member| {
                let mut calls: Vec<u32> = self.called_by(member).collect();
                calls.sort_unstable();
                calls.dedup();
                Own { written: self.view.written[member], given_back, found, calls }
            })
            .collect();
        let tells = |block: &&Block| self.tells(block.member as usize, block.first as usize);
        for block in self.group.blocks.iter().filter(tells) {
            let to = |exit: &Exit| match *exit {
                Exit::To(target) if self.module.imports.stub(target).is_none() => self.known_unit(target),
                _ => None,
            };
            own[block.member as usize].calls.extend(block.exits.iter().filter_map(to));
        }
        if only_function(self.module, self.group.units).is_some() {
            let written = own.iter().fold(RegSet::EMPTY, |all, own| all | own.written);
            let mut calls: Vec<u32> = own.iter().flat_map(|own| own.calls.iter().copied()).collect();
            calls.sort_unstable();
            calls.dedup();
            for own in &mut own {
                (own.written, own.calls) = (written, calls.clone());
            }
        }
        own
    }

    fn called_by(&self, member: usize) -> impl Iterator<Item = u32> {
        self.steps(member).iter().enumerate().filter_map(move |(index, step)| match step.kind {
            Kind::Local(unit) if !self.insn(member, index).never_returns && self.tells(member, index) => {
                Some(unit)
            }
            _ => None,
        })
    }

    /// The unit that begins there, if it may be followed.
    pub(super) fn known_unit(&self, target: Svma) -> Option<u32> {
        let unit = self.module.unit_at(target)?;
        let is_known = self.module.units[unit].start == target && self.module.units[unit].fde.is_some();
        is_known.then_some(unit as u32)
    }

    /// From here on, what is called by pointers or in other modules leaves alone what this may have
    /// to; and if others call this than those in view, that is live at returns.
    pub(super) fn preserving(mut self, preserved: &[RegSet], called_by_others: bool) -> Self {
        self.preserved = self.group.units.iter().map(|&unit| preserved[unit as usize]).collect();
        if called_by_others {
            self.unwritten = self.preserved.clone();
        }
        self
    }

    pub(super) fn preserved(&self, member: usize) -> RegSet {
        self.preserved.get(member).copied().unwrap_or_default()
    }
}
