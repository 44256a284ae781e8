//! What code is seen to read, whatever the ABI says: evidence of other conventions.

use super::step::Kind;
use super::views::GroupViews;
use super::{Summary, Work};
use crate::code::regs::{RegSet, abi};
use rayon::prelude::*;
use std::collections::HashMap;

/// Registers (and flags) that callers are seen to read after calling a unit directly, although by
/// the ABI a call leaves nothing in them; handed on to what the unit jumps to in place of
/// returning.
pub(super) fn unusual_results(views: &GroupViews<'_, '_>, summaries: &[Summary]) -> HashMap<u32, RegSet> {
    let GroupViews { module, groups, .. } = *views;
    let found: Vec<(u32, RegSet)> = (0..groups.members.len())
        .into_par_iter()
        .with_min_len(8)
        .flat_map_iter(|group| views.with(group, summaries, |work| work.read_after_calls()))
        .collect();
    let mut wanted: HashMap<u32, RegSet> = HashMap::new();
    let mut work = found;
    while let Some((unit, set)) = work.pop() {
        let whole = &groups.members[groups.of_unit[unit as usize] as usize];
        let known = wanted.entry(unit).or_default();
        if known.contains(set) {
            continue;
        }
        *known |= set;
        for &part in whole {
            for &target in &module.decoded[part as usize].jumps_out {
                if let Some(next) = module.unit_at(target) {
                    if !whole.contains(&(next as u32)) {
                        work.push((next as u32, set));
                    }
                }
            }
        }
    }
    wanted
}

impl Work<'_, '_> {
    /// What is seen to be read behind calls by the ABI, though they leave nothing there: other
    /// conventions keep it.
    pub(super) fn see_what_is_kept(&mut self) {
        if self.foreign.is_empty() {
            return;
        }
        let mut found = Vec::new();
        self.see_behind_calls(|kind, after| {
            if let Kind::Foreign(call) = kind {
                found.push((call, after & (abi::CLOBBERED - abi::LEFT)));
            }
        });
        for (call, keeps) in found {
            self.foreign[call as usize].keeps = keeps;
        }
    }

    /// Callees of which results are read in places where by the ABI there are none.
    fn read_after_calls(&self) -> Vec<(u32, RegSet)> {
        if self.view.callees.is_empty() {
            return Vec::new();
        }
        let mut found = Vec::new();
        self.see_behind_calls(|kind, after| {
            let unusual = after & (abi::CLOBBERED - abi::RETURNED);
            if let (Kind::Local(unit), false) = (kind, unusual.is_empty()) {
                found.push((unit, unusual));
            }
        });
        found
    }

    /// Tells what is seen to be read behind each instruction that may come back.
    fn see_behind_calls(&self, mut tell: impl FnMut(Kind, RegSet)) {
        let outside = Self::evidence();
        let entry = self.seen_read();
        for block in 0..self.group.blocks.len() {
            let member = self.group.blocks[block].member as usize;
            self.walk_runs(block, &outside, entry, |run, after| {
                let index = run.first as usize;
                if !run.is_plain && !self.insn(member, index).never_returns {
                    tell(self.steps(member)[index].kind, after);
                }
            });
        }
    }
}
