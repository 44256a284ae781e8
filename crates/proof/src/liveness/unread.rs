//! What functions write and do not read: by the ABI that would be for nothing, so it is for
//! a caller of another convention.

use super::body::Last;
use super::set::{ALL, NO_RESULTS, Set, whole};
use super::solve::{Function, Summary, Way};

/// Up to where.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    CallOrReturn,
    /// With no call before.
    Return,
}

impl Function<'_> {
    /// What instructions write that write only one register, and no known reader reads, up to
    /// there.
    pub(crate) fn unread(&self, among: Set, until: Until, way: &Way, summaries: &[Summary]) -> Set {
        let writes = |&member: &usize| self.body(member).blocks.iter().any(|block| block.left & among != 0);
        if !(0..self.members.len()).any(|member| writes(&member)) {
            return 0;
        }
        let live = self.solve(way, summaries);
        let reaching = self.reaching(until);
        let mut found = 0;
        for member in 0..self.members.len() {
            for (index, block) in self.body(member).blocks.iter().enumerate() {
                let at = self.base(member) + index;
                let after = self.after(member, index, &live, way, summaries);
                let read = self.before_last(at, block.last, after, way, summaries)
                    | self.at_pad(member, block.pad, &live, way);
                let reaches = match (block.last, until) {
                    (Last::Return, _) => ALL,
                    (Last::Plain, _) => reaching[at],
                    (_, Until::CallOrReturn) => ALL,
                    (_, Until::Return) => 0,
                };
                found |= block.left & among & !whole(read | !reaches);
            }
        }
        found
    }

    /// What it returns in registers in which the ABI returns nothing.
    pub(crate) fn returned_unread(&self, way: &Way, summaries: &[Summary]) -> Set {
        self.unread(NO_RESULTS, Until::Return, way, summaries)
    }

    /// What calls by pointers may have left there, and it may hand back.
    pub(crate) fn handed_back(&self) -> Set {
        let by_pointer = || {
            (0..self.members.len()).flat_map(|member| {
                let blocks = self.body(member).blocks.iter().enumerate();
                let calls = blocks.filter(|(_, block)| block.last == Last::Pointer);
                calls.map(move |(index, _)| self.base(member) + index)
            })
        };
        if by_pointer().next().is_none() {
            return 0;
        }
        let reaching = self.reaching(Until::Return);
        by_pointer().fold(0, |all, at| all | reaching[at]) & NO_RESULTS
    }

    /// For each block, what is not surely overwritten from behind it up to there.
    fn reaching(&self, until: Until) -> Vec<Set> {
        let mut begins = vec![0; self.count()];
        let mut ends = begins.clone();
        let at_calls = if until == Until::Return { 0 } else { ALL };
        let mut changed = true;
        while changed {
            changed = false;
            for member in (0..self.members.len()).rev() {
                for (index, block) in self.body(member).blocks.iter().enumerate().rev() {
                    let at = self.base(member) + index;
                    let mut end = if block.outs.0 == block.outs.1 { 0 } else { at_calls };
                    self.successors(member, index, |to| end |= begins[to]);
                    ends[at] = end;
                    let begin = match block.last {
                        Last::Plain => end,
                        Last::Return => ALL,
                        _ => at_calls,
                    } & !block.kills;
                    changed |= std::mem::replace(&mut begins[at], begin) != begin;
                }
            }
        }
        ends
    }
}
