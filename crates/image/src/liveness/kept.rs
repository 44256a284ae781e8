//! What direct callers keep in registers that by the ABI a call may change: gcc does that
//! (`-fipa-ra`) over calls of functions of which it knows that they leave those registers alone,
//! and hand-written code does what it likes.
//!
//! From callers to callees, until nothing is added. Callers nobody has seen (in bytes that were not
//! decoded, or that call a function in its middle) may keep anything.

use super::passed::Unread;
use super::step::Kind;
use super::views::GroupViews;
use super::{Known, Outside, Summary, Work};
use crate::code::groups::Exit;
use crate::code::insn::Flow;
use crate::code::known_callers;
use crate::code::regs::{RegSet, abi};
use crate::module::Module;
use rayon::prelude::*;

/// What a group's callers want of it when it returns.
#[derive(Clone, Copy, Default)]
pub(super) struct Kept {
    /// What direct ones may keep in registers, or read as a result.
    registers: RegSet,
    /// There are no others.
    alone: bool,
}

impl Kept {
    /// Whether others may call it than those in view.
    pub(super) fn by_others(&self) -> bool {
        !self.alone
    }
}

/// What is known of a module besides summaries.
#[derive(Clone, Copy)]
pub(super) struct OfModule<'m> {
    pub(super) known: Known,
    /// For each group.
    pub(super) unread: &'m [Unread],
    /// For each unit.
    pub(super) preserved: &'m [RegSet],
}

/// For each group, what its callers want.
pub(super) fn kept_by_callers(
    views: &GroupViews<'_, '_>,
    OfModule { known: known_to, unread, preserved }: OfModule<'_>,
    summaries: &[Summary],
) -> Vec<Kept> {
    let GroupViews { module, groups, .. } = *views;
    let known = known_callers::of(module);
    let alone = |members: &Vec<u32>| {
        members.iter().all(|&unit| known[unit as usize] || module.units[unit as usize].is_part)
    };
    let odd = super::odd::of(views, summaries);
    let first = |(members, unread): (_, &Unread)| {
        let alone = alone(members);
        let odd = odd | known_to.passed | unread.returned;
        Kept { registers: if alone { RegSet::EMPTY } else { odd }, alone }
    };
    let mut kept: Vec<Kept> = groups.members.iter().zip(unread).map(first).collect();
    for unit in entered_unseen(module) {
        kept[groups.of_unit[unit] as usize] = Kept { registers: RegSet::ALL, alone: false };
    }
    // Callers before callees, so that most groups are looked at once.
    let mut ahead = vec![true; groups.members.len()];
    let mut level = views.levels.len();
    while level > 0 {
        let due: Vec<u32> =
            views.levels[level - 1].iter().copied().filter(|&group| ahead[group as usize]).collect();
        if due.is_empty() {
            level -= 1;
            continue;
        }
        let found: Vec<Vec<(u32, RegSet)>> = due
            .par_iter()
            .with_min_len(8)
            .map(|&group| {
                let members = &groups.members[group as usize];
                if !calls_units(module, members) {
                    return Vec::new();
                }
                let kept = &kept[group as usize];
                views.with(group as usize, summaries, |work| {
                    work.seeing().preserving(preserved, kept.by_others()).knowing(known_to).kept(kept)
                })
            })
            .collect();
        for &group in &due {
            ahead[group as usize] = false;
        }
        for (unit, set) in found.into_iter().flatten() {
            let group = groups.of_unit[unit as usize];
            let known = &mut kept[group as usize].registers;
            if !known.contains(set) {
                *known |= set;
                ahead[group as usize] = true;
            }
        }
    }
    debug_assert!(!ahead.contains(&true), "callees are on lower levels, or on the same");
    kept
}

fn calls_units(module: &Module<'_>, members: &[u32]) -> bool {
    members.iter().any(|&unit| {
        let decoded = &module.decoded[unit as usize];
        decoded.calls.iter().chain(&decoded.jumps_out).any(|&target| module.unit_at(target).is_some())
    })
}

/// Units that are called in their middle, or perhaps from bytes that were not decoded.
fn entered_unseen(module: &Module<'_>) -> Vec<usize> {
    let calls = module.decoded.iter().flat_map(|decoded| &decoded.calls);
    let middles =
        calls.filter_map(|&target| module.unit_at(target).filter(|&unit| module.units[unit].start != target));
    let unseen = module.possible_entries().into_iter().filter_map(|target| module.unit_at(target));
    middles.chain(unseen).collect()
}

impl Outside {
    /// Where callers want so much.
    pub(super) fn kept(kept: &Kept) -> Self {
        let results = if kept.alone { RegSet::EMPTY } else { abi::RETURNED };
        Self {
            at_return: abi::CALLEE_SAVED | results | kept.registers,
            unknown: RegSet::ALL,
            arguments: abi::ARGUMENTS,
            unwinding: true,
            by_evidence: false,
            reaching: None,
        }
    }
}

impl Work<'_, '_> {
    /// What this group keeps over its calls, by callee; `own` is what its own callers want of it.
    fn kept(&self, own: &Kept) -> Vec<(u32, RegSet)> {
        let outside = Outside::kept(own);
        let entry = self.solve(&outside);
        let mut found = Vec::new();
        for (index, block) in self.group.blocks.iter().enumerate() {
            let member = block.member as usize;
            self.walk_runs(index, &outside, &entry, |run, after| {
                let at = run.first as usize;
                if let Kind::Local(unit) = self.steps(member)[at].kind {
                    if !self.insn(member, at).never_returns {
                        found.push((unit, after));
                    }
                }
            });
            let last = self.insn(member, block.end as usize - 1);
            let leaves = block.exits.iter().filter_map(|exit| match exit {
                Exit::To(target) if last.flow != Flow::Call32 => self.module.unit_at(*target),
                _ => None,
            });
            // What it jumps to returns to its own callers.
            let behind = self.at_return(member, &outside) - abi::CALLEE_SAVED;
            found.extend(leaves.map(|unit| (unit as u32, behind)));
        }
        found.retain(|(_, set)| !set.is_empty());
        found
    }
}
