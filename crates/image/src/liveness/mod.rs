//! Which registers are live before each instruction: whose contents may still matter to anybody.
//!
//! What is not live may be overwritten; so whatever is not known makes registers live. Known is:
//!
//! - inside a group of units, the graph of blocks. It is complete for twins: nothing enters a twin but what is known;
//! - of a function called directly, its [`Summary`]: what it may read, what it certainly overwrites. A register that it
//!   does not certainly overwrite may be kept across the call (gcc's `-fipa-ra` does that, and hand-written code);
//! - at a return: live are the callee-saved registers, those a value may be returned in, every register this
//!   function never writes (`liveness/unwritten.rs`) or may give back as it found it, and every register that some caller is seen to read after
//!   such a call before writing it; everything, where what is returned to is not what was called from;
//! - in functions without unwind entry, everything but what they overwrite themselves (`liveness/bare.rs`);
//! - everywhere, what an unwinder needs there by the unwind table: callee-saved registers that were not saved, and the
//!   one the frame is found by;
//! - wherever an exception may be raised, what the landing pad reads, rax and rdx aside, which the unwinder sets.
//!
//! The ABI is assumed only of calls and jumps to other modules (by name, through the PLT or the GOT): that they read
//! nothing but [`abi::ARGUMENTS`] and callee-saved registers, and that nobody keeps anything over them in
//! [`abi::CLOBBERED`], but for what they are seen to read behind them all the same (others keep more). A call by a pointer may be of any convention: it reads everything but flags, and what it leaves may be
//! handed back. Who may be of a convention that keeps more than the ABI keeps that over both (`liveness/preserved.rs`). Nor of `call [rax]` with an address just computed, or in a module with TLS descriptors: those keep all registers.
//! [`Knowledge::OfCallers`] goes further, for code that is run often: of what a function never writes, only what direct
//! callers keep (`liveness/kept.rs`), and what those by pointers are seen to read (`liveness/odd.rs`), is live when it returns, and of a function whose callers are all known no more is
//! returned than they read; of vectors, a call by a pointer reads those that the function may have written for it
//! (`liveness/passed.rs`); a register that a call by the ABI may have changed, and that nobody has written since, is
//! live nowhere (`liveness/meaning.rs`); and well-known functions are passed what their prototypes say.
//! Also that a signal handler, a debugger or another thread looks only at what the kernel saves and restores.

mod bare;
mod calls;
mod kept;
mod meaning;
mod odd;
mod overwrites;
mod passed;
mod preserved;
mod reached;
mod returning;
mod seen;
mod summary;
mod unwritten;

use crate::code::effects::{Effect, by_stack, effect, restores_much};
use crate::code::groups::{Exit, Group, Groups, RelyOn};
use crate::code::insn::{Flow, Insn};
use crate::code::prototypes::Convention;
use crate::code::regs::{RAX, RDX, RSP, RegSet, abi};
use crate::module::Module;
use crate::unwind::needed::{self, Row};
use calls::{is_tls_descriptor_call, loads_stack_pointer};
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory};
use kept::Kept;
use rayon::prelude::*;
use seen::unusual_results;
use std::collections::HashMap;
pub use summary::Summary;
use units::Svma;

/// How much is made of what is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Knowledge {
    /// Nothing is taken for granted of what direct callers keep.
    #[default]
    Cautious,
    /// All direct calls are in view, but for those by bytes that are no code as far as can be seen.
    OfCallers,
}

/// The same, inside.
#[derive(Clone, Copy)]
struct Known {
    knowledge: Knowledge,
    /// Vector and mask registers that the module passes in another convention than the ABI's.
    passed: RegSet,
}

impl Known {
    const CAUTIOUS: Self = Self { knowledge: Knowledge::Cautious, passed: RegSet::EMPTY };
}

/// The liveness of a module.
pub struct Liveness {
    /// For each unit, for each instruction, what is live before it.
    pub before: Vec<Vec<RegSet>>,
}

impl Liveness {
    /// `relied_on` says which jump tables are; jumps by others may lead anywhere.
    pub fn of(module: &Module<'_>, relied_on: &RelyOn<'_>) -> Self {
        Self::with(module, Knowledge::Cautious, relied_on)
    }

    pub fn with(module: &Module<'_>, knowledge: Knowledge, relied_on: &RelyOn<'_>) -> Self {
        let groups = Groups::of(module);
        let mut known = Known { knowledge, ..Known::CAUTIOUS };
        let mut summaries = calls::summaries(module, &groups, known, relied_on);
        let mut unread = Vec::new();
        if knowledge == Knowledge::OfCallers {
            unread = passed::unread(module, &groups, &summaries, relied_on);
            known.passed = unread.iter().fold(RegSet::EMPTY, |all, unread| all | unread.passed);
            if !known.passed.is_empty() {
                summaries = calls::summaries(module, &groups, known, relied_on);
            }
        }
        let preserved = preserved::of(module, &groups, &summaries, relied_on);
        let (wanted, kept) = match knowledge {
            Knowledge::Cautious => (unusual_results(module, &groups, &summaries, relied_on), Vec::new()),
            Knowledge::OfCallers => {
                let modules = kept::OfModule { known, unread: &unread, preserved: &preserved };
                (HashMap::new(), kept::kept_by_callers(module, &groups, modules, &summaries, relied_on))
            }
        };
        let mut before = vec![Vec::new(); module.units.len()];
        let all: Vec<Vec<(u32, Vec<RegSet>)>> = groups
            .members
            .par_iter()
            .enumerate()
            .with_min_len(8)
            .map(|(group, members)| {
                let kept = kept.get(group);
                let work = Work::new(module, members, &summaries, relied_on);
                let work = work.preserving(&preserved, kept.is_some_and(Kept::by_others)).knowing(known);
                if let Some(kept) = kept {
                    return work.live_outside(&Outside::kept(kept));
                }
                let wanted =
                    members.iter().filter_map(|unit| wanted.get(unit)).fold(RegSet::EMPTY, |all, &w| all | w);
                work.live(wanted)
            })
            .collect();
        for (unit, live) in all.into_iter().flatten() {
            before[unit as usize] = live;
        }
        before
            .par_iter_mut()
            .enumerate()
            .filter(|(unit, _)| module.units[*unit].fde.is_none())
            .for_each(|(unit, before)| *before = bare::live(module, unit));
        Self { before }
    }
}

/// What is live where control leaves the group, for one way of looking at it.
#[derive(Clone, Copy)]
struct Outside {
    at_return: RegSet,
    /// Where anything may follow.
    unknown: RegSet,
    /// What a call by the ABI may read.
    arguments: RegSet,
    /// Whether what unwinders need counts.
    unwinding: bool,
    by_evidence: bool,
    /// Not what is live, but what is not surely overwritten up to a place of this kind.
    reaching: Option<Reaching>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reaching {
    CallsAndReturns,
    /// With no call before.
    Returns,
}

/// The transfer of an instruction: live before = reads | (live after - kills).
#[derive(Clone, Copy)]
struct Step {
    kind: Kind,
    reads: RegSet,
    kills: RegSet,
    writes: RegSet,
    /// Put on the stack.
    saves: RegSet,
}

/// A call of another module or by a pointer.
#[derive(Clone, Copy)]
struct Foreign {
    by: Convention,
    /// What else it may be passed something in, where nobody knows of which convention what is called is.
    by_another: Option<RegSet>,
    /// Seen to be kept over it all the same.
    keeps: RegSet,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Return,
    /// May be anything: reads what is unknown.
    Unknown,
    /// A call of another module or by a pointer, by its number.
    Foreign(u32),
    /// A call of this unit.
    Local(u32),
}

struct Work<'a, 'd> {
    module: &'a Module<'d>,
    summaries: &'a [Summary],
    group: Group<'a>,
    /// For each unit of the group, for each instruction.
    steps: Vec<Vec<Step>>,
    foreign: Vec<Foreign>,
    /// For each unit, for each instruction, the block it may unwind to.
    pads: Vec<Vec<u32>>,
    /// For each unit, for each instruction, what an unwinder needs there.
    needed: Vec<Vec<RegSet>>,
    /// For each unit of the group, everything it writes itself.
    written: Vec<RegSet>,
    /// For each unit, what is live when it returns because it never writes it; empty where that does not count.
    unwritten: Vec<RegSet>,
    /// For each unit, what its callers may want back whatever it calls; empty before that is known.
    preserved: Vec<RegSet>,
    /// Whether it may hand back what calls by pointers left where the ABI leaves nothing.
    hands_back: bool,
    /// Everything it gets from the stack.
    restored: RegSet,
    /// For each unit of which not all is relied on, which instructions tell something of it; empty for others.
    told: Vec<Vec<bool>>,
    known: Known,
    /// For each unit, for each instruction, what may hold something of use; empty where nothing is known of that.
    meaning: Vec<Vec<RegSet>>,
}

const NO_PAD: u32 = u32::MAX;

impl<'a, 'd> Work<'a, 'd> {
    fn new(
        module: &'a Module<'d>,
        members: &'a [u32],
        summaries: &'a [Summary],
        relied_on: &RelyOn<'_>,
    ) -> Self {
        let group = Group::build(module, members, relied_on);
        let mut work = Self {
            module,
            summaries,
            group,
            steps: Vec::new(),
            foreign: Vec::new(),
            pads: Vec::new(),
            needed: Vec::new(),
            written: vec![RegSet::EMPTY; members.len()],
            unwritten: Vec::new(),
            preserved: Vec::new(),
            hands_back: false,
            restored: RegSet::EMPTY,
            told: Vec::new(),
            known: Known::CAUTIOUS,
            meaning: Vec::new(),
        };
        work.told = work.reached(relied_on);
        let mut factory = InstructionInfoFactory::new();
        for (member, &unit) in members.iter().enumerate() {
            let rows = work.rows_of(unit as usize);
            let steps = work.steps_of(member, &rows, &mut factory);
            work.steps.push(steps);
            let pads = work.pads_of(unit as usize);
            work.pads.push(pads);
            work.needed.push(rows.iter().map(|row| row.needed).collect());
        }
        work.see_what_is_kept();
        work.hands_back =
            work.foreign.iter().any(|call| call.by_another.is_some()) && work.found().may_be_regcall();
        work
    }

    /// With so much made of what is known.
    fn knowing(mut self, known: Known) -> Self {
        self.known = known;
        if known.knowledge == Knowledge::OfCallers {
            self.meaning = self.find_meaning(false);
            self.see_what_is_passed();
        }
        self
    }

    /// What the unwind table says at each instruction. Where there is none, nothing relies on it.
    fn rows_of(&self, unit: usize) -> Vec<Row> {
        let insns = &self.module.decoded[unit].insns;
        let Some(fde) = self.module.units[unit].fde else {
            let called = Row { at: 0, needed: abi::CALLEE_SAVED, is_bare: true, frame: None };
            return vec![called; insns.len()];
        };
        let frames = &self.module.frames;
        let fde = &frames.fdes[fde as usize];
        let cie = &frames.cies[fde.cie as usize];
        let rows = needed::rows(frames.program(&cie.program), frames.program(&fde.program));
        let mut row = 0;
        insns
            .iter()
            .map(|insn| {
                while rows.get(row + 1).is_some_and(|next| next.at <= u64::from(insn.at)) {
                    row += 1;
                }
                rows[row]
            })
            .collect()
    }

    fn steps_of(&mut self, member: usize, rows: &[Row], factory: &mut InstructionInfoFactory) -> Vec<Step> {
        let unit = self.group.units[member] as usize;
        let code = self.module.code(unit);
        let start = self.module.units[unit].start;
        let insns = &self.module.decoded[unit].insns;
        let mut decoder = Decoder::with_ip(64, code, start.0, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let mut steps = Vec::with_capacity(insns.len());
        let overlaps = self.overlaps(member);
        let switches_stack = insns.iter().any(|insn| loads_stack_pointer(insn.bytes(code)));
        for (index, insn) in insns.iter().enumerate() {
            if decoder.position() != insn.at as usize {
                let _ = decoder.set_position(insn.at as usize);
                decoder.set_ip(start.0 + u64::from(insn.at));
            }
            decoder.decode_out(&mut instruction);
            let Effect { reads, kills, writes } = effect(&instruction, factory);
            let (kind, reads, kills) = match insn.flow {
                Flow::Call32 => (self.direct_call(*insn, start, code), RegSet::general(RSP), RegSet::EMPTY),
                Flow::CallIndirect if is_tls_descriptor_call(self.module, insns, index, code) => {
                    (Kind::Unknown, RegSet::ALL, RegSet::EMPTY)
                }
                Flow::CallIndirect => {
                    let slot = insn.rip_target(start, code).and_then(|slot| self.module.imports.slot(slot));
                    (self.foreign(slot), reads, RegSet::EMPTY)
                }
                // What returns to elsewhere than its caller hands over any registers it likes.
                Flow::Return if switches_stack || !rows[index].is_bare => {
                    (Kind::Unknown, RegSet::ALL, RegSet::EMPTY)
                }
                Flow::Return => (Kind::Return, reads, RegSet::EMPTY),
                Flow::Stop => (Kind::Unknown, RegSet::ALL, RegSet::EMPTY),
                _ => (Kind::Plain, reads, kills),
            };
            let (saves, restores) = by_stack(&instruction);
            self.restored |= restores;
            // Of what puts state back, nobody knows what it leaves alone: all general registers, for one.
            if !insn.flow.is_call() && !overlaps && !restores_much(&instruction) && self.tells(member, index)
            {
                self.written[member] |= writes;
            }
            let kills = if overlaps { RegSet::EMPTY } else { kills };
            steps.push(Step { kind, reads, kills, writes, saves });
        }
        steps
    }

    fn pads_of(&self, unit: usize) -> Vec<u32> {
        let Some(Some(lsda)) = self.module.exceptions(unit) else { return Vec::new() };
        let insns = &self.module.decoded[unit].insns;
        let start = self.module.units[unit].start;
        let mut pads = vec![NO_PAD; insns.len()];
        for site in &lsda.call_sites {
            let Some(pad) = site.landing_pad else { continue };
            let block = self.group.block_at(self.module, pad);
            let from = site.start.0.wrapping_sub(start.0);
            let first = insns.partition_point(|insn| u64::from(insn.at) < from);
            let end = insns.partition_point(|insn| u64::from(insn.at) < from.saturating_add(site.length));
            // A pad nobody knows is one where anything may be read: the block index stands for that.
            pads[first.min(end)..end].fill(block.unwrap_or(NO_PAD - 1));
        }
        pads
    }

    /// Whether instructions of a unit overlap: then the next one of its list is not what follows, and anything may.
    fn overlaps(&self, member: usize) -> bool {
        self.module.decoded[self.group.units[member] as usize].overlaps
    }

    fn summary(&self, unit: u32) -> Summary {
        self.summaries[unit as usize]
    }

    /// Live before an instruction, given what is live after it.
    fn before(
        &self,
        member: usize,
        index: usize,
        after: RegSet,
        outside: &Outside,
        entry: &[RegSet],
    ) -> RegSet {
        let step = &self.steps[member][index];
        let never_returns = self.insn(member, index).never_returns;
        let after = if never_returns { RegSet::EMPTY } else { after };
        if let Some(reaching) = outside.reaching {
            return match step.kind {
                Kind::Plain => after - step.kills,
                Kind::Return => RegSet::ALL,
                _ => reaching.calls(),
            };
        }
        let mut live = match step.kind {
            Kind::Plain => step.reads | (after - step.kills),
            Kind::Return => step.reads | self.at_return(member, outside),
            Kind::Unknown => outside.unknown | after,
            Kind::Foreign(call) => {
                let Foreign { by, by_another, keeps } = self.foreign[call as usize];
                let arguments = match (by_another, self.known.knowledge) {
                    (Some(more), _) if !outside.by_evidence => outside.arguments | more,
                    (_, Knowledge::OfCallers) => outside.arguments & by.arguments,
                    _ => outside.arguments,
                };
                let keeps = keeps | self.preserved(member);
                let lost = if outside.by_evidence { abi::LEFT } else { abi::CLOBBERED - keeps };
                step.reads | arguments | (after - lost)
            }
            Kind::Local(unit) => {
                let summary = self.summary(unit);
                let reads = if outside.by_evidence { summary.seen_read } else { summary.reads };
                step.reads | reads | (after - summary.overwrites)
            }
        };
        if self.overlaps(member) {
            live |= outside.unknown;
        }
        if outside.unwinding {
            live |= self.needed[member][index];
        }
        match self.pads[member].get(index) {
            None | Some(&NO_PAD) => {}
            Some(&pad) => {
                let at_pad = entry.get(pad as usize).copied().unwrap_or(outside.unknown);
                live |= at_pad - RegSet::general(RAX) - RegSet::general(RDX);
            }
        }
        live
    }

    fn insn(&self, member: usize, index: usize) -> &Insn {
        &self.module.decoded[self.group.units[member] as usize].insns[index]
    }

    /// Live where a block ends.
    fn after_block(&self, block: usize, outside: &Outside, entry: &[RegSet]) -> RegSet {
        let block = &self.group.blocks[block];
        let mut after = block.next.iter().fold(RegSet::EMPTY, |all, &next| all | entry[next as usize]);
        for exit in &block.exits {
            after |= match *exit {
                Exit::Open | Exit::Lost => outside.unknown,
                Exit::To(_) if outside.reaching.is_some() => outside.unknown,
                Exit::To(target) => self.at_tail(block.member as usize, target, outside),
            };
        }
        after
    }

    /// Live where a unit of the group returns.
    fn at_return(&self, member: usize, outside: &Outside) -> RegSet {
        outside.at_return | self.unwritten.get(member).copied().unwrap_or_default()
    }

    /// Live at a jump to somewhere else.
    fn at_tail(&self, member: usize, target: Svma, outside: &Outside) -> RegSet {
        let at_return = self.at_return(member, outside);
        if self.module.imports.stub(target).is_some() {
            return outside.arguments | (at_return - (abi::CLOBBERED - self.preserved(member)));
        }
        match self.module.unit_at(target) {
            Some(unit)
                if self.module.units[unit].start == target && self.module.units[unit].fde.is_some() =>
            {
                let summary = self.summary(unit as u32);
                let reads = if outside.by_evidence { summary.seen_read } else { summary.reads };
                reads | (at_return - summary.overwrites)
            }
            _ => outside.unknown,
        }
    }

    /// Solves for what is live at the start of each block.
    fn solve(&self, outside: &Outside) -> Vec<RegSet> {
        let count = self.group.blocks.len();
        let mut entry = vec![RegSet::EMPTY; count];
        let has_pads = self.pads.iter().any(|pads| !pads.is_empty());
        let mut callers: Vec<Vec<u32>> = vec![Vec::new(); count];
        for (from, block) in self.group.blocks.iter().enumerate() {
            for &to in &block.next {
                callers[to as usize].push(from as u32);
            }
        }
        let mut queued = vec![true; count];
        let mut work: Vec<u32> = (0..count as u32).collect();
        while let Some(block) = work.pop() {
            let block = block as usize;
            queued[block] = false;
            let live = self.walk(block, outside, &entry, |_, _| {});
            if live == entry[block] {
                continue;
            }
            entry[block] = live;
            let mut queue = |at: u32| {
                if !std::mem::replace(&mut queued[at as usize], true) {
                    work.push(at);
                }
            };
            callers[block].iter().copied().for_each(&mut queue);
            if has_pads && self.group.blocks[block].is_entry {
                // It may be a landing pad, which any instruction may lead to.
                (0..count as u32).for_each(&mut queue);
            }
        }
        entry
    }

    /// Goes through a block backwards, telling what is live before each instruction (by its index).
    fn walk(
        &self,
        block: usize,
        outside: &Outside,
        entry: &[RegSet],
        mut tell: impl FnMut(usize, RegSet),
    ) -> RegSet {
        let bounds = &self.group.blocks[block];
        let member = bounds.member as usize;
        let mut live = self.after_block(block, outside, entry);
        for index in (bounds.first as usize..bounds.end as usize).rev() {
            live = self.before(member, index, live, outside, entry);
            if let Some(meaning) = self.meaning.get(member).filter(|_| !outside.by_evidence) {
                live = live & meaning[index];
            }
            tell(index, live);
        }
        live
    }

    fn reading() -> Outside {
        Outside {
            at_return: RegSet::EMPTY,
            unknown: RegSet::ALL,
            arguments: abi::ARGUMENTS,
            unwinding: false,
            by_evidence: false,
            reaching: None,
        }
    }
    fn evidence() -> Outside {
        Outside { unknown: RegSet::EMPTY, arguments: RegSet::EMPTY, by_evidence: true, ..Self::reading() }
    }

    /// The summaries of the group's units.
    fn summaries(&self) -> Vec<(u32, Summary)> {
        let reads = self.solve(&Self::reading());
        let seen_read = self.solve(&Self::evidence());
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
    fn live(mut self, wanted: RegSet) -> Vec<(u32, Vec<RegSet>)> {
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

    fn live_outside(&self, outside: &Outside) -> Vec<(u32, Vec<RegSet>)> {
        let entry = self.solve(outside);
        let mut all: Vec<Vec<RegSet>> =
            self.steps.iter().map(|steps| vec![RegSet::ALL; steps.len()]).collect();
        for block in 0..self.group.blocks.len() {
            let member = self.group.blocks[block].member as usize;
            let live = &mut all[member];
            self.walk(block, outside, &entry, |index, set| live[index] = set);
        }
        self.group.units.iter().copied().zip(all).collect()
    }
}
