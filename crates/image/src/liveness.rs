//! Which registers are live before each instruction: whose contents may still matter to anybody.
//!
//! What is not live may be overwritten; so whatever is not known makes registers live. Known is:
//!
//! - inside a group of units, the graph of blocks. It is complete for twins: nothing enters a twin but what is known;
//! - of a function called directly, its [`Summary`]: what it may read, what it certainly overwrites. A register that it
//!   does not certainly overwrite may be kept across the call (gcc's `-fipa-ra` does that, and hand-written code);
//! - at a return: live are the callee-saved registers, those a value may be returned in, every register this
//!   function never writes, and every register that some caller is seen to read after such a call before writing it
//!   ([`Liveness::precise`] knows more: see there);
//! - everywhere, what an unwinder needs there by the unwind table: callee-saved registers that were not saved, and the
//!   one the frame is found by;
//! - wherever an exception may be raised, what the landing pad reads, rax and rdx aside, which the unwinder sets.
//!
//! The ABI is assumed only of calls and jumps to other modules (by name, through the PLT or the GOT) and of indirect
//! calls: that they read nothing but [`abi::ARGUMENTS`] and callee-saved registers, and that nobody keeps anything over
//! them in [`abi::CLOBBERED`]. Not of `call [rax]` with an address just computed: TLS descriptors keep all registers.
//! Also that a signal handler, a debugger or another thread looks only at what the kernel saves and restores.

mod precise;
mod unusual;

use crate::effects::{Effect, effect};
use crate::groups::{Exit, Group, Groups};
use crate::imports::Import;
use crate::insn::{Flow, Insn};
use crate::module::Module;
use crate::occupied::Occupied;
use crate::order::bottom_up;
use crate::prototypes;
use crate::regs::{RAX, RDX, RSP, RegSet, abi};
use crate::unwind::needed;
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory};
use rayon::prelude::*;
use std::collections::BTreeSet;
use units::Svma;
use unusual::unusual_results;

/// What a caller must know about a function, at its first instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// May be read before it is overwritten, by it or what it calls.
    pub reads: RegSet,
    /// Overwritten on every way to a return.
    pub overwrites: RegSet,
    /// Surely read on some way, as far as was seen: evidence of unusual conventions.
    seen_read: RegSet,
}

impl Summary {
    const UNKNOWN: Self = Self { reads: RegSet::ALL, overwrites: RegSet::EMPTY, seen_read: RegSet::EMPTY };
}

/// The liveness of a module.
pub struct Liveness {
    /// For each unit, for each instruction, what is live before it.
    pub before: Vec<Vec<RegSet>>,
}

impl Liveness {
    /// What needs no knowledge of who calls what: live at returns is all that a function does not write.
    pub fn of(module: &Module<'_>) -> Self {
        let groups = Groups::of(module);
        let summaries = summaries(module, &groups, false);
        let wanted = unusual_results(module, &groups, &summaries, false);
        let all: Vec<Found> = groups
            .members
            .par_iter()
            .with_min_len(8)
            .map(|members| {
                let work = Work::new(module, members, &summaries, false);
                let wanted = of_all(members, &|unit| wanted.get(&unit).copied().unwrap_or_default());
                work.live(wanted, RegSet::ALL, true, None)
            })
            .collect();
        Self::gather(module, all)
    }

    fn gather(module: &Module<'_>, all: Vec<Found>) -> Self {
        let mut before = vec![Vec::new(); module.units.len()];
        for (unit, live) in all.into_iter().flat_map(|found| found.live) {
            before[unit as usize] = live;
        }
        Self { before }
    }
}

fn of_all(members: &[u32], sets: &dyn Fn(u32) -> RegSet) -> RegSet {
    members.iter().fold(RegSet::EMPTY, |all, &unit| all | sets(unit))
}

fn summaries(module: &Module<'_>, groups: &Groups, precise: bool) -> Vec<Summary> {
    let levels = bottom_up(&call_graph(module, groups));
    let mut summaries = vec![Summary::UNKNOWN; module.units.len()];
    for level in &levels {
        let found: Vec<Vec<(u32, Summary)>> = level
            .par_iter()
            .with_min_len(8)
            .map(|&group| {
                let work = Work::new(module, &groups.members[group as usize], &summaries, precise);
                work.summaries()
            })
            .collect();
        for (unit, summary) in found.into_iter().flatten() {
            summaries[unit as usize] = summary;
        }
    }
    summaries
}

/// Liveness of a function, and what it has live behind its direct calls and passes on to where it goes in place of
/// returning.
struct Found {
    live: Vec<(u32, Vec<RegSet>)>,
    behind_calls: Vec<(u32, RegSet)>,
    tails: Vec<u32>,
}

/// For each group, the groups it calls or jumps to.
fn call_graph(module: &Module<'_>, groups: &Groups) -> Vec<Vec<u32>> {
    groups
        .members
        .par_iter()
        .map(|members| {
            let mut callees = BTreeSet::new();
            for &unit in members {
                let decoded = &module.decoded[unit as usize];
                for &target in decoded.calls.iter().chain(&decoded.jumps_out) {
                    if let Some(callee) = module.unit_at(target) {
                        callees.insert(groups.of_unit[callee]);
                    }
                }
            }
            callees.into_iter().collect()
        })
        .collect()
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
}

/// The transfer of an instruction: live before = reads | (live after - kills).
#[derive(Clone, Copy)]
struct Step {
    kind: Kind,
    reads: RegSet,
    kills: RegSet,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Return,
    /// May be anything: reads what is unknown.
    Unknown,
    /// A call by the ABI, of what takes its arguments in these.
    Foreign(RegSet),
    /// A call of this unit.
    Local(u32),
}

struct Work<'a, 'd> {
    module: &'a Module<'d>,
    summaries: &'a [Summary],
    group: Group<'a>,
    /// For each unit of the group, for each instruction.
    steps: Vec<Vec<Step>>,
    /// For each unit, for each instruction, the block it may unwind to.
    pads: Vec<Vec<u32>>,
    /// For each unit, for each instruction, what an unwinder needs there.
    needed: Vec<Vec<RegSet>>,
    /// Everything the group writes itself.
    written: RegSet,
    /// Whether names of other modules' functions tell what they take.
    precise: bool,
}

const NO_PAD: u32 = u32::MAX;

impl<'a, 'd> Work<'a, 'd> {
    fn new(module: &'a Module<'d>, members: &'a [u32], summaries: &'a [Summary], precise: bool) -> Self {
        let group = Group::build(module, members);
        let mut work = Self {
            module,
            summaries,
            group,
            steps: Vec::new(),
            pads: Vec::new(),
            needed: Vec::new(),
            written: RegSet::EMPTY,
            precise,
        };
        let mut factory = InstructionInfoFactory::new();
        for &unit in members {
            let steps = work.steps_of(unit as usize, &mut factory);
            work.steps.push(steps);
            let pads = work.pads_of(unit as usize);
            work.pads.push(pads);
            let needed = work.needed_in(unit as usize);
            work.needed.push(needed);
        }
        work
    }

    fn needed_in(&self, unit: usize) -> Vec<RegSet> {
        let insns = &self.module.decoded[unit].insns;
        let Some(fde) = self.module.units[unit].fde else { return vec![abi::CALLEE_SAVED; insns.len()] };
        let frames = &self.module.frames;
        let fde = &frames.fdes[fde as usize];
        let cie = &frames.cies[fde.cie as usize];
        let rows = needed::rows(frames.program(&cie.program), frames.program(&fde.program));
        let mut row = 0;
        insns
            .iter()
            .map(|insn| {
                while rows.get(row + 1).is_some_and(|next| next.0 <= u64::from(insn.at)) {
                    row += 1;
                }
                rows[row].1
            })
            .collect()
    }

    fn steps_of(&mut self, unit: usize, factory: &mut InstructionInfoFactory) -> Vec<Step> {
        let code = self.module.code(unit);
        let start = self.module.units[unit].start;
        let insns = &self.module.decoded[unit].insns;
        let mut decoder = Decoder::with_ip(64, code, start.0, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let mut steps = Vec::with_capacity(insns.len());
        for (index, insn) in insns.iter().enumerate() {
            if decoder.position() != insn.at as usize {
                let _ = decoder.set_position(insn.at as usize);
                decoder.set_ip(start.0 + u64::from(insn.at));
            }
            decoder.decode_out(&mut instruction);
            let Effect { reads, kills, writes } = effect(&instruction, factory);
            let (kind, reads, kills) = match insn.flow {
                Flow::Call32 => (self.direct_call(*insn, start, code), RegSet::general(RSP), RegSet::EMPTY),
                Flow::CallIndirect if is_tls_descriptor_call(insns, index, code) => {
                    (Kind::Unknown, RegSet::ALL, RegSet::EMPTY)
                }
                Flow::CallIndirect => {
                    let slot = insn.rip_target(start, code).and_then(|slot| self.module.imports.slot(slot));
                    (Kind::Foreign(self.arguments(slot)), reads, RegSet::EMPTY)
                }
                Flow::Return => (Kind::Return, reads, RegSet::EMPTY),
                Flow::Stop => (Kind::Unknown, RegSet::ALL, RegSet::EMPTY),
                _ => (Kind::Plain, reads, kills),
            };
            if !insn.flow.is_call() {
                self.written |= writes;
            }
            steps.push(Step { kind, reads, kills });
        }
        steps
    }

    fn direct_call(&self, insn: Insn, start: Svma, code: &[u8]) -> Kind {
        let Some(target) = insn.target(start, code) else { return Kind::Unknown };
        if let Some(import) = self.module.imports.stub(target) {
            return Kind::Foreign(self.arguments(Some(import)));
        }
        match self.module.unit_at(target) {
            Some(unit) if self.module.units[unit].start == target => Kind::Local(unit as u32),
            _ => Kind::Unknown,
        }
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

    /// What a call of another module may read.
    fn arguments(&self, import: Option<Import<'_>>) -> RegSet {
        match import {
            Some(Import::Named(name)) if self.precise => prototypes::of(name).reads,
            _ => prototypes::ANY.reads,
        }
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
        let mut live = match step.kind {
            Kind::Plain => step.reads | (after - step.kills),
            Kind::Return => step.reads | outside.at_return,
            Kind::Unknown => outside.unknown | after,
            Kind::Foreign(arguments) => {
                step.reads | (outside.arguments & arguments) | (after - abi::CLOBBERED)
            }
            Kind::Local(unit) => {
                let summary = self.summary(unit);
                let reads = if outside.by_evidence { summary.seen_read } else { summary.reads };
                step.reads | reads | (after - summary.overwrites)
            }
        };
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
                Exit::To(target) => self.at_tail(target, outside),
            };
        }
        after
    }

    /// Live at a jump to somewhere else.
    fn at_tail(&self, target: Svma, outside: &Outside) -> RegSet {
        if let Some(import) = self.module.imports.stub(target) {
            return (outside.arguments & self.arguments(Some(import))) | (outside.at_return - abi::CLOBBERED);
        }
        match self.module.unit_at(target) {
            Some(unit) if self.module.units[unit].start == target => {
                let summary = self.summary(unit as u32);
                let reads = if outside.by_evidence { summary.seen_read } else { summary.reads };
                reads | (outside.at_return - summary.overwrites)
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
        }
    }
    fn evidence() -> Outside {
        Outside { unknown: RegSet::EMPTY, arguments: RegSet::EMPTY, by_evidence: true, ..Self::reading() }
    }

    /// The summaries of the group's units.
    fn summaries(&self) -> Vec<(u32, Summary)> {
        let reads = self.solve(&Self::reading());
        let seen_read = self.solve(&Self::evidence());
        let overwrites = self.overwrites();
        self.group
            .units
            .iter()
            .map(|&unit| {
                let start = self.module.units[unit as usize].start;
                let summary = match self.group.block_at(self.module, start) {
                    Some(block) => Summary {
                        reads: reads[block as usize],
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

    /// What is overwritten on every way from the entries to a return.
    fn overwrites(&self) -> RegSet {
        let count = self.group.blocks.len();
        let mut entry: Vec<RegSet> =
            self.group.blocks.iter().map(|b| if b.is_entry { RegSet::EMPTY } else { RegSet::ALL }).collect();
        let mut at_return = RegSet::ALL;
        let mut work: Vec<u32> = (0..count as u32).rev().collect();
        let mut queued = vec![true; count];
        while let Some(index) = work.pop() {
            queued[index as usize] = false;
            let block = &self.group.blocks[index as usize];
            let mut state = entry[index as usize];
            for insn in block.first as usize..block.end as usize {
                state |= match self.steps[block.member as usize][insn] {
                    Step { kind: Kind::Local(unit), .. } => self.summary(unit).overwrites,
                    Step { kind: Kind::Plain, kills, .. } => kills,
                    _ => RegSet::EMPTY,
                };
            }
            for &next in &block.next {
                let joined = entry[next as usize] & state;
                if joined != entry[next as usize] {
                    entry[next as usize] = joined;
                    if !std::mem::replace(&mut queued[next as usize], true) {
                        work.push(next);
                    }
                }
            }
        }
        for (index, block) in self.group.blocks.iter().enumerate() {
            let last = block.end as usize - 1;
            let returns = self.steps[block.member as usize][last].kind == Kind::Return;
            if !returns && block.exits.is_empty() {
                continue;
            }
            let mut state = entry[index];
            for insn in block.first as usize..block.end as usize {
                state |= match self.steps[block.member as usize][insn] {
                    Step { kind: Kind::Local(unit), .. } => self.summary(unit).overwrites,
                    Step { kind: Kind::Plain, kills, .. } => kills,
                    _ => RegSet::EMPTY,
                };
            }
            at_return = at_return & state;
        }
        // Nothing that must come back unchanged may be taken for overwritten.
        at_return - abi::CALLEE_SAVED
    }

    /// Callees of which results are read in places where by the ABI there are none.
    fn read_after_calls(&self) -> Vec<(u32, RegSet)> {
        let outside = Self::evidence();
        let calls = self.steps.iter().flatten().any(|step| matches!(step.kind, Kind::Local(_)));
        if !calls {
            return Vec::new();
        }
        let entry = self.solve(&outside);
        let mut found = Vec::new();
        for block in 0..self.group.blocks.len() {
            let member = self.group.blocks[block].member as usize;
            let mut after = self.after_block(block, &outside, &entry);
            self.walk(block, &outside, &entry, |index, live| {
                if let Kind::Local(unit) = self.steps[member][index].kind {
                    let unusual = after & (abi::CLOBBERED - abi::RETURNED);
                    if !unusual.is_empty() && !self.insn(member, index).never_returns {
                        found.push((unit, unusual));
                    }
                }
                after = live;
            });
        }
        found
    }

    /// What is live before each instruction of each unit. Behind the function's returns, its direct callers have `kept`;
    /// if others may call it too, they know it by the ABI.
    fn live(&self, wanted: RegSet, kept: RegSet, exposed: bool, occupied: Option<&Occupied>) -> Found {
        let never_written = !self.written - RegSet::ARITHMETIC_FLAGS;
        let results = if exposed { abi::RETURNED } else { abi::RETURNED & kept };
        let outside = Outside {
            at_return: abi::CALLEE_SAVED | results | (never_written & kept) | wanted,
            unknown: RegSet::ALL,
            arguments: abi::ARGUMENTS,
            unwinding: true,
            by_evidence: false,
        };
        let entry = self.solve(&outside);
        let mut live: Vec<Vec<RegSet>> =
            self.steps.iter().map(|steps| vec![RegSet::ALL; steps.len()]).collect();
        let mut behind_calls = Vec::new();
        let mut tails = Vec::new();
        for (at, block) in self.group.blocks.iter().enumerate() {
            let member = block.member as usize;
            let unit = self.group.units[member] as usize;
            let mut after = self.after_block(at, &outside, &entry);
            self.walk(at, &outside, &entry, |index, set| {
                if let Kind::Local(callee) = self.steps[member][index].kind {
                    if !self.insn(member, index).never_returns {
                        let behind = occupied.map_or(RegSet::ALL, |occupied| occupied.behind(unit, index));
                        behind_calls.push((callee, after & behind));
                    }
                }
                live[member][index] = occupied.map_or(set, |occupied| set & occupied.before[unit][index]);
                after = set;
            });
            for exit in &block.exits {
                if let Exit::To(target) = *exit {
                    tails.extend(self.module.unit_at(target).map(|unit| unit as u32));
                }
            }
        }
        let live = self.group.units.iter().copied().zip(live).collect();
        Found { live, behind_calls, tails }
    }
}

/// `call [rax]` where rax was just computed relative to the code: a thread-local variable's descriptor, whose function
/// changes nothing but rax.
pub(crate) fn is_tls_descriptor_call(insns: &[Insn], index: usize, code: &[u8]) -> bool {
    let bytes = insns[index].bytes(code);
    bytes.ends_with(&[0xff, 0x10])
        && insns[..index]
            .iter()
            .rev()
            .take(6)
            .any(|insn| insn.rip_displacement != 0 && matches!(insn.bytes(code), [0x48, 0x8d, 0x05, ..]))
}
