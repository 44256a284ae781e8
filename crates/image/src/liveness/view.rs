//! One decoded view of a group of units, made once and read by every pass of the analysis: its
//! graph of blocks, what each instruction does to registers, where it may unwind to, and what an
//! unwinder needs there.
//!
//! A large program has millions of instructions, but only thousands of different effects: a step
//! holds the number of its effect.

use super::callees::{is_tls_descriptor_call, loads_stack_pointer};
use super::reached::{entered, reached};
use super::read_on_entry::{ReadOnEntry, read_on_entry};
use super::runs::Runs;
use super::step::{Adjacent, Foreign, Kind, NO_PAD, NumberedStep, StepEffect, UNKNOWN_PAD};
use crate::code::effects::{Effect, by_stack, effect, restores_much};
use crate::code::groups::{Exit, Group, RelyOn};
use crate::code::insn::{Flow, Insn, index_at};
use crate::code::regs::{RSP, RegSet, abi};
use crate::module::Module;
use crate::unwind::needed::{self, Row};
use iced_x86::InstructionInfoFactory;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use units::Svma;

/// One group.
pub(super) struct GroupView<'a> {
    pub(super) group: Group<'a>,
    /// For each unit of the group, for each instruction.
    pub(super) steps: Vec<Vec<NumberedStep>>,
    /// The calls of other modules or by pointers, in the order of their numbers.
    pub(super) foreign: Vec<Foreign>,
    /// For each unit, for each instruction, the block it may unwind to; empty where no instruction
    /// of a unit may.
    pub(super) pads: Vec<Vec<u32>>,
    /// For each unit, everything it writes itself.
    pub(super) written: Vec<RegSet>,
    /// Everything the group gets from the stack.
    pub(super) restored: RegSet,
    /// For each unit of which not all is relied on, which instructions tell something of it; empty
    /// for others.
    pub(super) told: Vec<Vec<bool>>,
    /// For each unit, whether its instructions overlap: then the next one of its list is not what
    /// follows.
    pub(super) overlaps: Vec<bool>,
    /// For each unit, the instructions that undecoded bytes may lead to, ascending.
    pub(super) entered_unseen: Vec<Vec<u32>>,
    /// For each block, whether it may be come to with nothing overwritten.
    pub(super) entered: Vec<bool>,
    /// For each block, the blocks that lead to it.
    pub(super) callers: Adjacent,
    /// All that the group writes by instructions that are neither calls nor unknown.
    pub(super) plain_writes: RegSet,
    /// The units it calls, ascending.
    pub(super) callees: Vec<u32>,
    /// The ways out that are no returns, each once.
    pub(super) exits: Vec<Exit>,
    pub(super) has_unknown_call: bool,
    /// Instructions other than calls after which anything may follow.
    pub(super) has_unknown_end: bool,
    pub(super) read_on_entry: ReadOnEntry,
    pub(super) runs: Runs,
}

/// Numbers for effects, while views are made.
#[derive(Default)]
pub(super) struct Numbering {
    numbers: HashMap<StepEffect, u32, BuildHasherDefault<Folded>>,
    pub(super) effects: Vec<StepEffect>,
}

/// A hasher of one word, since every instruction is looked up.
#[derive(Default)]
struct Folded(u64);

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

impl Numbering {
    pub(super) fn number(&mut self, effect: StepEffect) -> u32 {
        let next = self.effects.len() as u32;
        let effects = &mut self.effects;
        *self.numbers.entry(effect).or_insert_with(|| {
            effects.push(effect);
            next
        })
    }
}

/// A view while it is made.
pub(super) struct View<'a, 'd, 'w> {
    module: &'a Module<'d>,
    view: GroupView<'a>,
    numbering: &'w mut Numbering,
    factory: &'w mut InstructionInfoFactory,
}

impl<'a> View<'a, '_, '_> {
    pub(super) fn of(
        module: &'a Module<'_>,
        members: &'a [u32],
        relied_on: &RelyOn<'_>,
        numbering: &mut Numbering,
        factory: &mut InstructionInfoFactory,
    ) -> GroupView<'a> {
        let group = Group::build(module, members, relied_on);
        let blocks = &group.blocks;
        let edges = blocks
            .iter()
            .enumerate()
            .flat_map(|(from, block)| block.next.iter().map(move |&to| (to, from as u32)));
        let callers = Adjacent::of(blocks.len(), edges);
        let mut exits: Vec<Exit> = Vec::new();
        for exit in blocks.iter().flat_map(|block| &block.exits) {
            if !exits.contains(exit) {
                exits.push(*exit);
            }
        }
        let view = GroupView {
            told: reached(module, &group, relied_on),
            entered: entered(&group),
            group,
            steps: Vec::new(),
            foreign: Vec::new(),
            pads: Vec::new(),
            written: vec![RegSet::EMPTY; members.len()],
            restored: RegSet::EMPTY,
            overlaps: members.iter().map(|&unit| module.decoded[unit as usize].overlaps).collect(),
            entered_unseen: members.iter().map(|&unit| entered_unseen(module, unit as usize)).collect(),
            callers,
            plain_writes: RegSet::EMPTY,
            callees: Vec::new(),
            exits,
            has_unknown_call: false,
            has_unknown_end: false,
            read_on_entry: ReadOnEntry::default(),
            runs: Runs::default(),
        };
        let mut view = View { module, view, numbering, factory };
        for (member, &unit) in members.iter().enumerate() {
            let rows = view.rows_of(unit as usize);
            let steps = view.steps_of(member, &rows);
            view.view.steps.push(steps);
            let pads = view.pads_of(unit as usize);
            view.view.pads.push(pads);
        }
        let View { mut view, numbering, .. } = view;
        view.callees.sort_unstable();
        view.callees.dedup();
        let effects = &numbering.effects;
        view.read_on_entry = read_on_entry(module, &view.group, &view.steps, view.restored, effects);
        view.runs =
            Runs::of(&view.group, &view.steps, &view.pads, (&view.overlaps, &view.entered_unseen), effects);
        view
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

    fn steps_of(&mut self, member: usize, rows: &[Row]) -> Vec<NumberedStep> {
        let unit = self.view.group.units[member] as usize;
        let module = self.module;
        let code = module.code(unit);
        let start = module.units[unit].start;
        let insns = &module.decoded[unit].insns;
        let mut steps = Vec::with_capacity(insns.len());
        let overlaps = self.view.overlaps[member];
        let switches_stack = insns.iter().any(|insn| loads_stack_pointer(insn.bytes(code)));
        for ((index, insn), instruction) in insns.iter().enumerate().zip(module.instructions(unit)) {
            let Effect { reads, kills, writes } = effect(&instruction, self.factory);
            let (kind, reads, kills) = match insn.flow {
                Flow::Call32 => (self.direct_call(*insn, start, code), RegSet::general(RSP), RegSet::EMPTY),
                Flow::CallIndirect if is_tls_descriptor_call(module, insns, index, code) => {
                    (Kind::Unknown, RegSet::ALL, RegSet::EMPTY)
                }
                Flow::CallIndirect => {
                    let slot = insn.rip_target(start, code).and_then(|slot| module.imports.slot(slot));
                    (self.foreign(Foreign::of(slot)), reads, RegSet::EMPTY)
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
            let view = &mut self.view;
            view.restored |= restores;
            match kind {
                Kind::Plain | Kind::Return => view.plain_writes |= writes,
                Kind::Unknown if insn.flow.is_call() => view.has_unknown_call = true,
                Kind::Unknown => view.has_unknown_end = true,
                Kind::Local(callee) => view.callees.push(callee),
                Kind::Foreign(_) => {}
            }
            // Of what puts state back, nobody knows what it leaves alone: all general registers,
            // for one.
            if !insn.flow.is_call()
                && !overlaps
                && !restores_much(&instruction)
                && tells(&view.told, member, index)
            {
                view.written[member] |= writes;
            }
            let kills = if overlaps { RegSet::EMPTY } else { kills };
            let effect = self.numbering.number(StepEffect { reads, kills, writes, saves });
            debug_assert_eq!(rows[index].needed & RegSet::GENERAL, rows[index].needed);
            steps.push(NumberedStep { kind, effect, needed: rows[index].needed.0 as u16 });
        }
        steps
    }

    fn foreign(&mut self, call: Foreign) -> Kind {
        self.view.foreign.push(call);
        Kind::Foreign(self.view.foreign.len() as u32 - 1)
    }

    fn direct_call(&mut self, insn: Insn, start: Svma, code: &[u8]) -> Kind {
        let Some(target) = insn.target(start, code) else { return Kind::Unknown };
        let stub = self.module.imports.stub(target);
        if stub.is_some() {
            return self.foreign(Foreign::of(stub));
        }
        match self.module.unit_at(target) {
            // Nobody can check what is not in the unwind table.
            Some(unit)
                if self.module.units[unit].start == target && self.module.units[unit].fde.is_some() =>
            {
                Kind::Local(unit as u32)
            }
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
            let block = self.view.group.block_at(self.module, pad);
            let from = site.start.0.wrapping_sub(start.0);
            let first = insns.partition_point(|insn| u64::from(insn.at) < from);
            let end = insns.partition_point(|insn| u64::from(insn.at) < from.saturating_add(site.length));
            pads[first.min(end)..end].fill(block.unwrap_or(UNKNOWN_PAD));
        }
        pads
    }
}

/// Which of a unit's instructions undecoded bytes may lead to.
fn entered_unseen(module: &Module<'_>, unit: usize) -> Vec<u32> {
    let (start, insns) = (module.units[unit].start, &module.decoded[unit].insns);
    let targets = module.unseen_branches_into(unit).iter();
    targets.filter_map(|to| index_at(insns, (to.0 - start.0) as u32)).map(|index| index as u32).collect()
}

/// Whether an instruction tells something of its unit.
pub(super) fn tells(told: &[Vec<bool>], member: usize, index: usize) -> bool {
    told.get(member).and_then(|told| told.get(index)).copied().unwrap_or(true)
}
