//! What calls by pointers are passed and give back, whatever their convention. clang's `regcall`,
//! its `preserve_none`, and those of Haskell, OCaml and others pass arguments in all general
//! registers, and in more vectors than the ABI; and `regcall` returns as many.
//!
//! Such a call reads every general register. A vector (or mask) register in which the ABI passes
//! nothing, it reads where the function may have written that and has called nobody by the ABI
//! since; and, in a module that passes something there, also where the function may have got it
//! from its caller, to hand it on. A module does so if it writes such a register, and nobody is
//! seen to read that, nor to write it again, up to a call or return: by the ABI that would be for
//! nothing.
//!
//! A function that may be called by a pointer likewise returns something in a register in which the
//! ABI returns nothing, if it writes that one alone, and nobody reads it up to a return. (What
//! functions read right behind such calls is in `odd.rs`.)

use super::step::{Kind, NumberedStep};
use super::views::GroupViews;
use super::work::Reaching;
use super::{Outside, Summary, Work};
use crate::code::regs::{RegSet, abi};
use rayon::prelude::*;

/// Vectors and masks in which the ABI passes nothing.
const OTHERS: RegSet = RegSet((RegSet::VECTORS.0 | RegSet::MASK_REGISTERS.0) & !abi::ARGUMENTS.0);
/// What the ABI leaves nothing in behind a call. Nobody returns anything in flags.
pub(super) const NO_RESULTS: RegSet =
    RegSet(abi::CLOBBERED.0 & !abi::RETURNED.0 & !RegSet::ARITHMETIC_FLAGS.0);

/// What a function writes and does not read.
#[derive(Clone, Copy, Default)]
pub(super) struct Unread {
    /// Of [`OTHERS`], up to a call or return.
    pub(super) passed: RegSet,
    /// Of [`NO_RESULTS`], up to a return; and what calls by pointers may have left there.
    pub(super) returned: RegSet,
}

/// For each group, what it writes that by the ABI is for nothing.
pub(super) fn unread(views: &GroupViews<'_, '_>, summaries: &[Summary]) -> Vec<Unread> {
    let of = |mut work: Work<'_, '_>| {
        for call in &mut work.foreign {
            call.by_another = call.by_another.map(|_| RegSet::GENERAL);
        }
        let mut unread = work.unread();
        if work.hands_back {
            unread.returned |= work.handed_back();
        }
        unread
    };
    (0..views.groups.members.len())
        .into_par_iter()
        .with_min_len(8)
        .map(|group| views.with(group, summaries, |work| of(work.seeing())))
        .collect()
}

impl Reaching {
    pub(super) fn calls(self) -> RegSet {
        if self == Self::Returns { RegSet::EMPTY } else { RegSet::ALL }
    }
    fn outside(self) -> Outside {
        Outside { reaching: Some(self), unknown: self.calls(), ..Work::reading() }
    }
}

impl Work<'_, '_> {
    /// Finds what each call by a pointer may be passed.
    pub(super) fn see_what_is_passed(&mut self) {
        if self.foreign.iter().all(|call| call.by_another.is_none()) {
            return;
        }
        let own = self.find_meaning(true);
        let view = self.view;
        for (index, block) in view.group.blocks.iter().enumerate() {
            for number in view.runs.of_block(index) {
                let first = view.runs.all()[number].first as usize;
                if let Kind::Foreign(call) = view.steps[block.member as usize][first].kind {
                    let more = &mut self.foreign[call as usize].by_another;
                    *more = more.map(|_| RegSet::GENERAL | own[number] & OTHERS);
                }
            }
        }
    }

    /// What this group writes that by the ABI is for nothing.
    pub(super) fn unread(&self) -> Unread {
        let written = self.view.written.iter().fold(RegSet::EMPTY, |all, &set| all | set);
        let mut found = Unread::default();
        if !written.meets(OTHERS | NO_RESULTS) {
            return found;
        }
        let read = self.behind_each(&Self::reading());
        if written.meets(OTHERS) {
            found.passed = self.written_in_vain(OTHERS, Reaching::CallsAndReturns, &read);
        }
        found.returned = self.written_in_vain(NO_RESULTS, Reaching::Returns, &read);
        found
    }

    fn written_in_vain(&self, among: RegSet, reaching: Reaching, read: &[Vec<RegSet>]) -> RegSet {
        let reaches = self.behind_each(&reaching.outside());
        let mut found = RegSet::EMPTY;
        for (member, steps) in self.view.steps.iter().enumerate() {
            for (index, step) in steps.iter().enumerate().filter(|(_, step)| step.kind == Kind::Plain) {
                let written = self.effect(*step).writes - RegSet::ARITHMETIC_FLAGS;
                let reaches = reaches[member][index].contains(written);
                if reaches && is_one_register(written, among) && !read[member][index].meets(written) {
                    found |= written;
                }
            }
        }
        found
    }

    /// What calls by pointers may have left, and may be handed back to the caller.
    pub(super) fn handed_back(&self) -> RegSet {
        let is_by_pointer = |step: &NumberedStep| match step.kind {
            Kind::Foreign(call) => self.foreign[call as usize].by_another.is_some(),
            kind => kind == Kind::Unknown,
        };
        if !self.view.steps.iter().flatten().any(is_by_pointer) {
            return RegSet::EMPTY;
        }
        let outside = Reaching::Returns.outside();
        let entry = self.solve(&outside);
        let mut handed = RegSet::EMPTY;
        for (index, block) in self.group.blocks.iter().enumerate() {
            self.walk_runs(index, &outside, &entry, |run, after| {
                if is_by_pointer(&self.steps(block.member as usize)[run.first as usize]) {
                    handed |= after;
                }
            });
        }
        handed & NO_RESULTS
    }

    /// What is live (or reaches somewhere) behind each instruction of each unit; everything, where
    /// nothing leads to it.
    fn behind_each(&self, outside: &Outside) -> Vec<Vec<RegSet>> {
        let entry = self.solve(outside);
        let mut all: Vec<Vec<RegSet>> =
            self.view.steps.iter().map(|steps| vec![RegSet::ALL; steps.len()]).collect();
        for (block, bounds) in self.group.blocks.iter().enumerate() {
            let behind = &mut all[bounds.member as usize];
            let mut after = self.after_block(block, outside, &entry);
            self.walk(block, outside, &entry, |index, before| {
                behind[index] = after;
                after = before;
            });
        }
        all
    }
}

/// Whether these are parts of one register, and all among those.
fn is_one_register(set: RegSet, among: RegSet) -> bool {
    let first = set.0.trailing_zeros();
    let number = if first < 32 { first } else { (first - 32) % 32 };
    let whole = match first {
        0..32 => RegSet(1 << first),
        _ => RegSet::vector(number),
    };
    !set.is_empty() && among.contains(set) && whole.contains(set)
}
