//! What is known of a group's instructions, whoever calls it and whatever it calls: found out once, and looked at by all
//! passes.

use super::calls::{is_tls_descriptor_call, loads_stack_pointer};
use super::{Foreign, Kind, Step, Summary, Work};
use crate::effects::{Effect, by_stack, effect, restores_much};
use crate::groups::{Group, Groups, RelyOn};
use crate::insn::{Flow, Insn};
use crate::module::Module;
use crate::regs::{RSP, RegSet, abi};
use crate::unwind::needed::{self, Row};
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory};
use rayon::prelude::*;

pub(super) struct Base<'a, 'd> {
    pub(super) module: &'a Module<'d>,
    pub(super) group: Group<'a>,
    /// For each unit of the group, for each instruction.
    pub(super) steps: Vec<Vec<Step>>,
    /// Calls of other modules and by pointers.
    pub(super) foreign: Vec<Foreign>,
    /// Whether it is known what is seen to be kept over those.
    pub(super) settled: bool,
    /// For each unit, for each instruction, the block it may unwind to.
    pub(super) pads: Vec<Vec<u32>>,
    /// For each unit, for each instruction, what an unwinder needs there.
    pub(super) needed: Vec<Vec<RegSet>>,
    /// For each unit of the group, everything it writes itself.
    pub(super) written: Vec<RegSet>,
    /// Whether it may hand back what calls by pointers left where the ABI leaves nothing.
    pub(super) hands_back: bool,
    /// Everything it gets from the stack.
    pub(super) restored: RegSet,
    /// For each unit of which not all is relied on, which instructions tell something of it; empty for others.
    pub(super) told: Vec<Vec<bool>>,
}

pub(super) const NO_PAD: u32 = u32::MAX;

/// Of each group.
pub(super) fn all<'a, 'd>(
    module: &'a Module<'d>,
    groups: &'a Groups,
    relied_on: &RelyOn<'_>,
) -> Vec<Base<'a, 'd>> {
    let of = |members: &'a Vec<u32>| Base::of(module, members, relied_on);
    groups.members.par_iter().with_min_len(8).map(of).collect()
}

/// From here on summaries are what they are.
pub(super) fn settle(bases: &mut [Base<'_, '_>], summaries: &[Summary]) {
    bases.par_iter_mut().with_min_len(8).for_each(|base| {
        base.foreign = Work::of(base, summaries).foreign;
        base.settled = true;
    });
}

impl<'a, 'd> Base<'a, 'd> {
    fn of(module: &'a Module<'d>, members: &'a [u32], relied_on: &RelyOn<'_>) -> Self {
        let mut base = Self {
            module,
            group: Group::build(module, members, relied_on),
            steps: Vec::new(),
            foreign: Vec::new(),
            settled: false,
            pads: Vec::new(),
            needed: Vec::new(),
            written: vec![RegSet::EMPTY; members.len()],
            hands_back: false,
            restored: RegSet::EMPTY,
            told: Vec::new(),
        };
        base.told = base.reached(relied_on);
        let mut factory = InstructionInfoFactory::new();
        for (member, &unit) in members.iter().enumerate() {
            let rows = base.rows_of(unit as usize);
            let steps = base.steps_of(member, &rows, &mut factory);
            base.steps.push(steps);
            let pads = base.pads_of(unit as usize);
            base.pads.push(pads);
            base.needed.push(rows.iter().map(|row| row.needed).collect());
        }
        base.hands_back =
            base.foreign.iter().any(|call| call.by_another.is_some()) && base.found().may_be_regcall();
        base
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
    pub(super) fn overlaps(&self, member: usize) -> bool {
        self.module.decoded[self.group.units[member] as usize].overlaps
    }

    pub(super) fn insn(&self, member: usize, index: usize) -> &Insn {
        &self.module.decoded[self.group.units[member] as usize].insns[index]
    }
}
