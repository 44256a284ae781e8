//! One pass over one group: what is live (or reaches somewhere) at its blocks, for one way of
//! looking at the outside.
//!
//! Every step, and so every block, is a transfer of one shape: what is live before it is `reads |
//! (after & keeps)`. So a block is composed once, and a round of the solver costs two operations
//! for a block, however long that is.

use super::runs::Run;
use super::step::{Adjacent, Foreign, Kind, NO_PAD, NumberedStep, StepEffect};
use super::view::GroupView;
use super::{Knowledge, Known, Summary};
use crate::code::groups::{Exit, Group};
use crate::code::insn::{Flow, Insn};
use crate::code::regs::{RAX, RDX, RegSet, abi};
use crate::module::Module;
use std::cell::OnceCell;
use units::Svma;

/// What is live where control leaves the group, for one way of looking at it.
#[derive(Clone, Copy)]
pub(super) struct Outside {
    pub(super) at_return: RegSet,
    /// Where anything may follow.
    pub(super) unknown: RegSet,
    /// What a call by the ABI may read.
    pub(super) arguments: RegSet,
    /// Whether what unwinders need counts.
    pub(super) unwinding: bool,
    pub(super) by_evidence: bool,
    /// Not what is live, but what is not surely overwritten up to a place of this kind.
    pub(super) reaching: Option<Reaching>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reaching {
    CallsAndReturns,
    /// With no call before.
    Returns,
}

/// Sets before = `adds | (after & keeps)`, forwards or backwards.
#[derive(Clone, Copy)]
pub(super) struct Transfer {
    pub(super) adds: RegSet,
    pub(super) keeps: RegSet,
}

impl Transfer {
    pub(super) const NOTHING: Self = Self { adds: RegSet::EMPTY, keeps: RegSet(!0) };

    pub(super) fn apply(self, set: RegSet) -> RegSet {
        self.adds | (set & self.keeps)
    }
    /// This one upon what another one gives.
    pub(super) fn after(self, first: Self) -> Self {
        Self { adds: self.apply(first.adds), keeps: first.keeps & self.keeps }
    }
}

pub(super) struct Work<'a, 'd> {
    pub(super) module: &'a Module<'d>,
    pub(super) summaries: &'a [Summary],
    pub(super) view: &'a GroupView<'a>,
    pub(super) group: &'a Group<'a>,
    effects: &'a [StepEffect],
    pub(super) foreign: Vec<Foreign>,
    /// For each unit, what is live when it returns because it never writes it; empty where that
    /// does not count.
    pub(super) unwritten: Vec<RegSet>,
    /// For each unit, what its callers may want back whatever it calls; empty before that is known.
    pub(super) preserved: Vec<RegSet>,
    /// Whether it may hand back what calls by pointers left where the ABI leaves nothing.
    pub(super) hands_back: bool,
    pub(super) known: Known,
    /// What may hold something of use before each run; `None` where nothing is known of that.
    pub(super) meaning: Option<Vec<RegSet>>,
    /// What is seen to be read from each block on.
    evidence: OnceCell<Vec<RegSet>>,
}

impl<'a, 'd> Work<'a, 'd> {
    pub(super) fn new(
        module: &'a Module<'d>,
        view: &'a GroupView<'a>,
        effects: &'a [StepEffect],
        summaries: &'a [Summary],
    ) -> Self {
        Self {
            module,
            summaries,
            view,
            group: &view.group,
            effects,
            foreign: view.foreign.clone(),
            unwritten: Vec::new(),
            preserved: Vec::new(),
            hands_back: false,
            known: Known::CAUTIOUS,
            meaning: None,
            evidence: OnceCell::new(),
        }
    }

    /// With what calls of others are seen to keep.
    pub(super) fn seeing(mut self) -> Self {
        self.see_what_is_kept();
        self.hands_back = self.foreign.iter().any(|call| call.by_another.is_some())
            && self.view.read_on_entry.may_be_regcall();
        self
    }

    /// With so much made of what is known.
    pub(super) fn knowing(mut self, known: Known) -> Self {
        self.known = known;
        if known.knowledge == Knowledge::OfCallers {
            self.meaning = Some(self.find_meaning(false));
            self.see_what_is_passed();
        }
        self
    }

    pub(super) fn steps(&self, member: usize) -> &'a [NumberedStep] {
        &self.view.steps[member]
    }

    pub(super) fn effect(&self, step: NumberedStep) -> &'a StepEffect {
        &self.effects[step.effect as usize]
    }

    /// Whether instructions of a unit overlap: then anything may follow each of them.
    pub(super) fn overlaps(&self, member: usize) -> bool {
        self.view.overlaps[member]
    }

    /// Whether an instruction tells something of its unit.
    pub(super) fn tells(&self, member: usize, index: usize) -> bool {
        super::view::tells(&self.view.told, member, index)
    }

    pub(super) fn summary(&self, unit: u32) -> Summary {
        self.summaries[unit as usize]
    }

    pub(super) fn insn(&self, member: usize, index: usize) -> &'a Insn {
        &self.module.decoded[self.group.units[member] as usize].insns[index]
    }

    /// What a run does to what is live, the landing pad that it may unwind to aside.
    fn transfer_of(&self, member: usize, run: &Run, outside: &Outside) -> Transfer {
        if !run.is_plain {
            return self.transfer(member, run.first as usize, outside);
        }
        let needed = if outside.unwinding { RegSet(u128::from(run.needed)) } else { RegSet::EMPTY };
        let adds = if outside.reaching.is_some() { RegSet::EMPTY } else { run.reads | needed };
        Transfer { adds, keeps: !run.kills }
    }

    /// What an instruction does to what is live, the landing pad that it may unwind to aside.
    fn transfer(&self, member: usize, index: usize, outside: &Outside) -> Transfer {
        let numbered = self.view.steps[member][index];
        let &StepEffect { reads, kills, .. } = self.effect(numbered);
        let after = |adds: RegSet, lost: RegSet| {
            let never_returns = self.insn(member, index).never_returns;
            Transfer { adds, keeps: if never_returns { RegSet::EMPTY } else { !lost } }
        };
        if let Some(reaching) = outside.reaching {
            return match numbered.kind {
                Kind::Plain => after(RegSet::EMPTY, kills),
                Kind::Return => Transfer { adds: RegSet::ALL, keeps: RegSet::EMPTY },
                // A return that may lead to elsewhere than the caller hands over what it has, too.
                Kind::Unknown if self.insn(member, index).flow == Flow::Return => {
                    Transfer { adds: RegSet::ALL, keeps: RegSet::EMPTY }
                }
                _ => Transfer { adds: reaching.calls(), keeps: RegSet::EMPTY },
            };
        }
        let mut transfer = match numbered.kind {
            Kind::Plain => after(reads, kills),
            Kind::Return => Transfer { adds: reads | self.at_return(member, outside), keeps: RegSet::EMPTY },
            Kind::Unknown => after(outside.unknown, RegSet::EMPTY),
            Kind::Foreign(call) => {
                let Foreign { by, by_another, keeps } = self.foreign[call as usize];
                let arguments = match (by_another, self.known.knowledge) {
                    (Some(more), _) if !outside.by_evidence => outside.arguments | more,
                    (_, Knowledge::OfCallers) => outside.arguments & by.arguments,
                    _ => outside.arguments,
                };
                let keeps = keeps | self.preserved(member);
                let lost = if outside.by_evidence { abi::LEFT } else { abi::CLOBBERED - keeps };
                after(reads | arguments, lost)
            }
            Kind::Local(unit) => {
                let summary = self.summary(unit);
                let read = if outside.by_evidence { summary.seen_read } else { summary.reads };
                after(reads | read, summary.overwrites)
            }
        };
        if self.overlaps(member) {
            transfer.adds |= outside.unknown;
        }
        if outside.unwinding {
            transfer.adds |= RegSet(u128::from(numbered.needed));
        }
        transfer
    }

    /// Live where a block ends, by ways that leave the group.
    fn after_exits(&self, block: usize, outside: &Outside) -> RegSet {
        let block = &self.group.blocks[block];
        let mut after = RegSet::EMPTY;
        for exit in &block.exits {
            after |= match *exit {
                Exit::Open | Exit::Lost => outside.unknown,
                Exit::To(_) if outside.reaching.is_some() => outside.unknown,
                Exit::To(target) => self.at_tail(block.member as usize, target, outside),
            };
        }
        after
    }

    /// Live where a block ends.
    pub(super) fn after_block(&self, block: usize, outside: &Outside, entry: &[RegSet]) -> RegSet {
        let next = self.group.blocks[block].next.iter();
        next.fold(self.after_exits(block, outside), |all, &next| all | entry[next as usize])
    }

    /// Live where a unit of the group returns.
    pub(super) fn at_return(&self, member: usize, outside: &Outside) -> RegSet {
        outside.at_return | self.unwritten.get(member).copied().unwrap_or_default()
    }

    /// Live at a jump to somewhere else.
    fn at_tail(&self, member: usize, target: Svma, outside: &Outside) -> RegSet {
        let at_return = self.at_return(member, outside);
        if self.module.imports.stub(target).is_some() {
            return outside.arguments | (at_return - (abi::CLOBBERED - self.preserved(member)));
        }
        match self.known_unit(target) {
            Some(unit) => {
                let summary = self.summary(unit);
                let reads = if outside.by_evidence { summary.seen_read } else { summary.reads };
                reads | (at_return - summary.overwrites)
            }
            _ => outside.unknown,
        }
    }

    /// Solves for what is live at the start of each block.
    pub(super) fn solve(&self, outside: &Outside) -> Vec<RegSet> {
        let Composed { transfers, unwinds } = self.compose(outside);
        let count = transfers.len();
        let mut entry = vec![RegSet::EMPTY; count];
        // What pads are read by: blocks, by pad.
        let by_pad = Adjacent::of(
            if unwinds.is_empty() { 0 } else { count },
            unwinds.iter().map(|unwind| (unwind.pad, unwind.block)),
        );
        let mut queued = vec![true; count];
        let mut work: Vec<u32> = (0..count as u32).collect();
        while let Some(block) = work.pop() {
            let at = block as usize;
            queued[at] = false;
            let next = self.group.blocks[at].next.iter();
            let after = next.fold(RegSet::EMPTY, |all, &next| all | entry[next as usize]);
            let mut live = transfers[at].apply(after);
            if !unwinds.is_empty() {
                let first = unwinds.partition_point(|unwind| unwind.block < block);
                for unwind in unwinds[first..].iter().take_while(|unwind| unwind.block == block) {
                    live |= entry[unwind.pad as usize] & unwind.keeps;
                }
            }
            if live == entry[at] {
                continue;
            }
            entry[at] = live;
            let by_unwinding = if unwinds.is_empty() { &[][..] } else { by_pad.of_one(at) };
            for &before in self.view.callers.of_one(at).iter().chain(by_unwinding) {
                if !std::mem::replace(&mut queued[before as usize], true) {
                    work.push(before);
                }
            }
        }
        entry
    }

    fn compose(&self, outside: &Outside) -> Composed {
        let mut unwinds: Vec<Unwind> = Vec::new();
        let mut transfers = Vec::with_capacity(self.group.blocks.len());
        for (index, block) in self.group.blocks.iter().enumerate() {
            let member = block.member as usize;
            let mut whole = Transfer { adds: self.after_exits(index, outside), ..Transfer::NOTHING };
            let first_of_block = unwinds.len();
            for number in self.view.runs.of_block(index).rev() {
                let run = &self.view.runs.all()[number];
                let mut step = self.transfer_of(member, run, outside);
                let meant = self.meaning_of(number, outside);
                step.keeps = step.keeps & meant;
                unwinds[first_of_block..]
                    .iter_mut()
                    .for_each(|unwind| unwind.keeps = unwind.keeps & step.keeps);
                match Self::pad(run, outside) {
                    Some(pad) if (pad as usize) < self.group.blocks.len() => {
                        let keeps = !SET_BY_UNWINDER & meant;
                        let known = unwinds[first_of_block..].iter_mut().find(|unwind| unwind.pad == pad);
                        match known {
                            Some(unwind) => unwind.keeps |= keeps,
                            None => unwinds.push(Unwind { block: index as u32, pad, keeps }),
                        }
                    }
                    Some(_) => step.adds |= outside.unknown - SET_BY_UNWINDER,
                    None => {}
                }
                step.adds = step.adds & meant;
                whole = step.after(whole);
            }
            transfers.push(whole);
        }
        Composed { transfers, unwinds }
    }

    /// The landing pad (by its block) that counts in a run.
    fn pad(run: &Run, outside: &Outside) -> Option<u32> {
        (run.pad != NO_PAD && outside.reaching.is_none()).then_some(run.pad)
    }

    /// What is live at the landing pad of a run.
    fn at_pad(run: &Run, outside: &Outside, entry: &[RegSet]) -> RegSet {
        Self::pad(run, outside).map_or(RegSet::EMPTY, |pad| {
            entry.get(pad as usize).copied().unwrap_or(outside.unknown) - SET_BY_UNWINDER
        })
    }

    /// What may hold something of use before a run, where that counts.
    fn meaning_of(&self, run: usize, outside: &Outside) -> RegSet {
        self.meaning.as_ref().filter(|_| !outside.by_evidence).map_or(RegSet(!0), |meaning| meaning[run])
    }

    /// Goes through a block backwards by runs, telling the number of each and what is live behind
    /// it.
    pub(super) fn walk_runs(
        &self,
        block: usize,
        outside: &Outside,
        entry: &[RegSet],
        mut tell: impl FnMut(&Run, RegSet),
    ) {
        let member = self.group.blocks[block].member as usize;
        let mut live = self.after_block(block, outside, entry);
        for number in self.view.runs.of_block(block).rev() {
            let run = &self.view.runs.all()[number];
            tell(run, live);
            live = self.transfer_of(member, run, outside).apply(live) | Self::at_pad(run, outside, entry);
            live = live & self.meaning_of(number, outside);
        }
    }

    /// Goes through a block backwards, telling what is live before each instruction (by its index).
    pub(super) fn walk(
        &self,
        block: usize,
        outside: &Outside,
        entry: &[RegSet],
        mut tell: impl FnMut(usize, RegSet),
    ) {
        let member = self.group.blocks[block].member as usize;
        let mut live = self.after_block(block, outside, entry);
        let mut meanings: Vec<RegSet> = Vec::new();
        for number in self.view.runs.of_block(block).rev() {
            let run = &self.view.runs.all()[number];
            let (at_pad, steps) = (Self::at_pad(run, outside, entry), run.first as usize..run.end as usize);
            // In a run, what is written only comes to have a meaning.
            let mut meant = self.meaning_of(number, outside);
            meanings.clear();
            meanings.extend(steps.clone().map(|index| {
                let before = meant;
                meant |= self.effect(self.steps(member)[index]).writes;
                before
            }));
            for (index, meant) in steps.zip(&meanings).rev() {
                live = (self.transfer(member, index, outside).apply(live) | at_pad) & *meant;
                tell(index, live);
            }
        }
    }

    pub(super) fn reading() -> Outside {
        Outside {
            at_return: RegSet::EMPTY,
            unknown: RegSet::ALL,
            arguments: abi::ARGUMENTS,
            unwinding: false,
            by_evidence: false,
            reaching: None,
        }
    }
    pub(super) fn evidence() -> Outside {
        Outside { unknown: RegSet::EMPTY, arguments: RegSet::EMPTY, by_evidence: true, ..Self::reading() }
    }
    /// What is seen to be read from each block on. It hangs on nothing but summaries.
    pub(super) fn seen_read(&self) -> &[RegSet] {
        self.evidence.get_or_init(|| self.solve(&Self::evidence()))
    }

    /// The summaries of the group's units.
    pub(super) fn summaries(&self) -> Vec<(u32, Summary)> {
        let reads = self.solve(&Self::reading());
        let seen_read = self.seen_read();
        let (overwrites, _) = self.overwrites();
        let (may_write, may_hand_on) = (self.may_write(false), self.may_write(true));
        self.group
            .units
            .iter()
            .map(|&unit| {
                let start = self.module.units[unit as usize].start;
                let summary = match self.group.block_at(self.module, start) {
                    Some(block) => Summary {
                        reads: reads[block as usize],
                        may_write,
                        may_hand_on,
                        seen_read: seen_read[block as usize],
                        // It holds from every entry to every return, but a part is no entry.
                        overwrites: if self.group.blocks[block as usize].is_entry {
                            overwrites
                        } else {
                            RegSet::EMPTY
                        },
                    },
                    None => Summary::UNKNOWN,
                };
                (unit, summary)
            })
            .collect()
    }

    /// What is live before each instruction of each unit.
    pub(super) fn live(mut self, wanted: RegSet) -> Vec<(u32, Vec<RegSet>)> {
        let wanted = wanted | self.unread().returned | self.handed_back();
        self.unwritten = self.unwritten();
        let outside = Outside {
            at_return: abi::CALLEE_SAVED | abi::RETURNED | self.overwrites().1 | wanted,
            unknown: RegSet::ALL,
            arguments: abi::ARGUMENTS,
            unwinding: true,
            by_evidence: false,
            reaching: None,
        };
        self.live_outside(&outside)
    }

    pub(super) fn live_outside(&self, outside: &Outside) -> Vec<(u32, Vec<RegSet>)> {
        let entry = self.solve(outside);
        let mut all: Vec<Vec<RegSet>> =
            self.view.steps.iter().map(|steps| vec![RegSet::ALL; steps.len()]).collect();
        for block in 0..self.group.blocks.len() {
            let member = self.group.blocks[block].member as usize;
            let live = &mut all[member];
            self.walk(block, outside, &entry, |index, set| live[index] = set);
        }
        self.group.units.iter().copied().zip(all).collect()
    }
}

/// What an unwinder sets before it enters a landing pad.
const SET_BY_UNWINDER: RegSet = RegSet(1 << RAX | 1 << RDX);

/// A group's blocks, each as a whole.
struct Composed {
    transfers: Vec<Transfer>,
    /// By block, ascending.
    unwinds: Vec<Unwind>,
}

/// What a block reads by unwinding: what its landing pad does, of these registers.
struct Unwind {
    block: u32,
    pad: u32,
    keeps: RegSet,
}
