//! Which registers may hold anything that somebody put there on purpose. What liveness must take for live, because a call
//! by the ABI may read it, matters only if it is occupied: nobody passes on what the last call left behind.
//!
//! A register is occupied once an instruction has written it, and until a call *by the ABI* (of another module, or of an
//! address that is not known) has clobbered it; such a call leaves its results. At the start of a function that
//! callers nobody sees may enter ([`crate::exposed`]), arguments and callee-saved registers are occupied; and what is
//! occupied at its direct calls, always: so values kept over calls of local functions by `-fipa-ra`, or passed by
//! conventions of their own, stay occupied. What is not known occupies everything. Vector parts and mask registers that no
//! instruction of the module has as an operand are never occupied in it: nobody can have put arguments there for it.

use crate::effects::effect;
use crate::exposed::{Exposure, exposures};
use crate::groups::{Exit, Group, Groups};
use crate::imports::Import;
use crate::insn::{Flow, Insn};
use crate::module::Module;
use crate::order::bottom_up;
use crate::prototypes;
use crate::regs::{RAX, RCX, RDX, RegSet, abi};
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, Register};
use rayon::prelude::*;
use std::collections::BTreeSet;
use units::Svma;

/// What is occupied, and who may call whom.
pub struct Occupied {
    /// For each unit, for each instruction, what is occupied before it.
    pub before: Vec<Vec<RegSet>>,
    /// How each unit may be entered by callers nobody sees. One without any caller has some that were not seen.
    pub exposures: Vec<Exposure>,
}

/// What an instruction does to the set.
#[derive(Clone, Copy)]
enum Act {
    Writes(RegSet),
    /// A call by the ABI, which leaves these.
    Foreign(RegSet),
    Local(u32),
    Unknown,
}

/// What a call of a unit does to the set: what it leaves behind, and what it leaves alone.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Passage {
    leaves: RegSet,
    keeps: RegSet,
}

impl Passage {
    /// That of a function that is not seen to return.
    const NOTHING: Self = Self { leaves: RegSet::EMPTY, keeps: RegSet::EMPTY };
    const UNKNOWN: Self = Self { leaves: RegSet::ALL, keeps: RegSet::ALL };
    fn through(self, set: RegSet) -> RegSet {
        self.leaves | (set & self.keeps)
    }
}

/// Always occupied.
const ALWAYS: RegSet =
    abi::CALLEE_SAVED.union(RegSet::ARITHMETIC_FLAGS).union(RegSet::flag(crate::regs::Flag::Direction));

/// One function.
struct Body<'m> {
    group: Group<'m>,
    /// For each of its units, for each instruction.
    acts: Vec<Vec<Act>>,
    /// For each block, what is occupied where it is entered from outside; `None` if it is not, or at a unit's start.
    entries: Vec<Option<RegSet>>,
    /// For each block, the unit whose start it is, if it may be entered there.
    starts: Vec<Option<u32>>,
}

impl Occupied {
    pub fn of(module: &Module<'_>, groups: &Groups) -> Self {
        let mut exposures = exposures(module);
        let bodies: Vec<Body<'_>> =
            groups.members.par_iter().with_min_len(8).map(|members| Body::new(module, members)).collect();
        let present = present(module);
        let callees: Vec<Vec<u32>> = bodies.iter().map(|body| body.callees(module, groups)).collect();
        let levels = bottom_up(&callees);
        let passages = passages(module, groups, &bodies, &levels, &callees);
        let called = called(module, &bodies);
        for (unit, exposure) in exposures.iter_mut().enumerate() {
            if !called[unit] && !module.units[unit].is_part {
                *exposure = (*exposure).max(Exposure::Convention);
            }
        }
        let entries = entries(groups, &bodies, &levels, &passages, &exposures, module);
        let mut before = vec![Vec::new(); module.units.len()];
        let all: Vec<Vec<(u32, Vec<RegSet>)>> = bodies
            .par_iter()
            .with_min_len(8)
            .map(|body| {
                let mut found: Vec<Vec<RegSet>> =
                    body.acts.iter().map(|acts| vec![RegSet::ALL; acts.len()]).collect();
                let at_start = |unit: u32| entries[unit as usize];
                let states = body.solve(&passages, &at_start);
                for (block, &state) in states.iter().enumerate() {
                    let Some(state) = state else { continue };
                    body.walk(block, state, &passages, |member, index, set| {
                        found[member][index] = (set | ALWAYS) & present;
                    });
                }
                body.group.units.iter().copied().zip(found).collect()
            })
            .collect();
        for (unit, sets) in all.into_iter().flatten() {
            before[unit as usize] = sets;
        }
        Self { before, exposures }
    }

    /// Whether callers nobody sees may enter one of these units.
    pub fn is_exposed(&self, units: &[u32]) -> bool {
        units.iter().any(|&unit| self.exposures[unit as usize] != Exposure::None)
    }

    /// What is occupied behind an instruction that is followed by another.
    pub fn behind(&self, unit: usize, index: usize) -> RegSet {
        self.before[unit].get(index + 1).copied().unwrap_or(RegSet::ALL)
    }
}

fn passages(
    module: &Module<'_>,
    groups: &Groups,
    bodies: &[Body<'_>],
    levels: &[Vec<u32>],
    callees: &[Vec<u32>],
) -> Vec<Passage> {
    let mut passages = vec![Passage::NOTHING; module.units.len()];
    for level in levels {
        // Functions of a level call no others of it but those they form a cycle with: these again until nothing changes.
        let mut waiting = level.clone();
        while !waiting.is_empty() {
            let found: Vec<(u32, Passage)> = waiting
                .par_iter()
                .with_min_len(8)
                .map(|&group| (group, bodies[group as usize].passage(module, &passages)))
                .collect();
            let mut changed = BTreeSet::new();
            for (group, passage) in found {
                for &unit in &groups.members[group as usize] {
                    if passages[unit as usize] != passage {
                        passages[unit as usize] = passage;
                        changed.insert(group);
                    }
                }
            }
            let calls_changed = |group: &u32| callees[*group as usize].iter().any(|to| changed.contains(to));
            waiting = if changed.is_empty() {
                Vec::new()
            } else {
                level.iter().copied().filter(calls_changed).collect()
            };
        }
    }
    passages
}

/// Which units decoded code calls, or jumps to in place of returning.
fn called(module: &Module<'_>, bodies: &[Body<'_>]) -> Vec<bool> {
    let mut called = vec![false; module.units.len()];
    for body in bodies {
        for act in body.acts.iter().flatten() {
            if let Act::Local(unit) = act {
                called[*unit as usize] = true;
            }
        }
        for exit in body.group.blocks.iter().flat_map(|block| &block.exits) {
            if let Exit::To(target) = exit {
                if let Some(unit) = module.unit_at(*target) {
                    called[unit] = true;
                }
            }
        }
    }
    called
}

/// What is occupied at the start of each unit.
fn entries(
    groups: &Groups,
    bodies: &[Body<'_>],
    levels: &[Vec<u32>],
    passages: &[Passage],
    exposures: &[Exposure],
    module: &Module<'_>,
) -> Vec<RegSet> {
    let at_first = |exposure: &Exposure| match exposure {
        Exposure::Anything => RegSet::ALL,
        Exposure::None => ALWAYS,
        Exposure::Convention => abi::ARGUMENTS | ALWAYS,
    };
    let mut entries: Vec<RegSet> = exposures.iter().map(at_first).collect();
    let mut waiting: Vec<u32> = levels.iter().rev().flatten().copied().collect();
    while !waiting.is_empty() {
        let found: Vec<(u32, RegSet)> = waiting
            .par_iter()
            .with_min_len(8)
            .flat_map_iter(|&group| {
                bodies[group as usize].handed_on(module, passages, &|unit| entries[unit as usize])
            })
            .collect();
        let mut next = BTreeSet::new();
        for (unit, set) in found {
            let entry = &mut entries[unit as usize];
            if !entry.contains(set) {
                *entry |= set;
                next.insert(groups.of_unit[unit as usize]);
            }
        }
        waiting = next.into_iter().collect();
    }
    entries
}

impl<'m> Body<'m> {
    fn new(module: &Module<'_>, members: &'m [u32]) -> Self {
        let group = Group::build(module, members);
        let mut factory = InstructionInfoFactory::new();
        let acts = members.iter().map(|&unit| acts(module, unit as usize, &mut factory)).collect();
        let pads: BTreeSet<u64> = members
            .iter()
            .flat_map(|&unit| module.exceptions(unit as usize).flatten().map(|lsda| lsda.call_sites))
            .flatten()
            .filter_map(|site| site.landing_pad)
            .map(|pad| pad.0)
            .collect();
        let (mut entries, mut starts) = (Vec::new(), Vec::new());
        for block in &group.blocks {
            let unit = members[block.member as usize];
            let start = module.units[unit as usize].start;
            let at = module.decoded[unit as usize].insns[block.first as usize].at;
            let is_start = block.is_entry && at == 0;
            let is_pad = pads.contains(&(start.0 + u64::from(at)));
            starts.push(is_start.then_some(unit));
            entries.push(match (block.is_entry, is_pad) {
                // The unwinder restores what it has to, and sets two.
                (true, true) => Some(ALWAYS | RegSet(1 << RAX | 1 << RDX)),
                (true, false) if !is_start => Some(RegSet::ALL),
                _ => None,
            });
        }
        Self { group, acts, entries, starts }
    }

    fn callees(&self, module: &Module<'_>, groups: &Groups) -> Vec<u32> {
        let local = self.acts.iter().flatten().filter_map(|act| match act {
            Act::Local(unit) => Some(*unit),
            _ => None,
        });
        let tails = self.group.blocks.iter().flat_map(|block| &block.exits).filter_map(|exit| match exit {
            Exit::To(target) => module.unit_at(*target).map(|unit| unit as u32),
            _ => None,
        });
        let all: BTreeSet<u32> = local.chain(tails).map(|unit| groups.of_unit[unit as usize]).collect();
        all.into_iter().collect()
    }

    /// What is occupied at the start of each block that is reached.
    fn solve(&self, passages: &[Passage], at_start: &dyn Fn(u32) -> RegSet) -> Vec<Option<RegSet>> {
        let count = self.group.blocks.len();
        let mut states: Vec<Option<RegSet>> = vec![None; count];
        let mut work = Vec::new();
        for block in 0..count {
            let start = self.starts[block].map(at_start);
            if let Some(state) = self.entries[block].into_iter().chain(start).reduce(RegSet::union) {
                states[block] = Some(state);
                work.push(block as u32);
            }
        }
        while let Some(block) = work.pop() {
            let Some(state) = states[block as usize] else { continue };
            let after = self.walk(block as usize, state, passages, |_, _, _| {});
            for &next in &self.group.blocks[block as usize].next {
                let joined = states[next as usize].map_or(after, |known| known | after);
                if states[next as usize] != Some(joined) {
                    states[next as usize] = Some(joined);
                    work.push(next);
                }
            }
        }
        states
    }

    fn walk(
        &self,
        block: usize,
        mut state: RegSet,
        passages: &[Passage],
        mut tell: impl FnMut(usize, usize, RegSet),
    ) -> RegSet {
        let block = &self.group.blocks[block];
        let member = block.member as usize;
        for index in block.first as usize..block.end as usize {
            tell(member, index, state);
            state = match self.acts[member][index] {
                Act::Writes(set) => state | set,
                Act::Foreign(results) => (state - abi::CLOBBERED) | results | ALWAYS,
                Act::Local(unit) => passages[unit as usize].through(state) | ALWAYS,
                Act::Unknown => RegSet::ALL,
            };
        }
        state
    }

    fn passage(&self, module: &Module<'_>, passages: &[Passage]) -> Passage {
        let at_returns = |entry: RegSet| {
            let states = self.solve(passages, &|_| entry);
            let mut all = RegSet::EMPTY;
            for (index, state) in states.iter().enumerate() {
                let Some(state) = *state else { continue };
                let block = &self.group.blocks[index];
                let unit = self.group.units[block.member as usize] as usize;
                let returns = module.decoded[unit].insns[block.end as usize - 1].flow == Flow::Return;
                if !returns && block.exits.is_empty() {
                    continue;
                }
                let state = self.walk(index, state, passages, |_, _, _| {});
                if returns {
                    all |= state;
                }
                for exit in &block.exits {
                    all |= match *exit {
                        // A call in place of returning, or a jump to more of this function: either leaves results, and
                        // what a caller may keep.
                        Exit::Open | Exit::Lost => state | abi::RETURNED,
                        Exit::To(target) => match tail(module, target) {
                            Act::Foreign(results) => (state - abi::CLOBBERED) | results,
                            Act::Local(unit) => passages[unit as usize].through(state),
                            _ => RegSet::ALL,
                        },
                    };
                }
            }
            all
        };
        let begins =
            |&unit: &u32| module.decoded[unit as usize].insns.first().is_some_and(|insn| insn.at == 0);
        if !self.group.units.iter().all(begins) {
            return Passage::UNKNOWN;
        }
        let leaves = at_returns(RegSet::EMPTY);
        Passage { leaves, keeps: at_returns(RegSet::ALL) }
    }

    /// What is occupied at the starts of units that this one calls, or jumps to.
    fn handed_on(
        &self,
        module: &Module<'_>,
        passages: &[Passage],
        at_start: &dyn Fn(u32) -> RegSet,
    ) -> Vec<(u32, RegSet)> {
        let mut found = Vec::new();
        for (index, state) in self.solve(passages, at_start).into_iter().enumerate() {
            let Some(state) = state else { continue };
            let after = self.walk(index, state, passages, |member, index, set| {
                if let Act::Local(unit) = self.acts[member][index] {
                    found.push((unit, set));
                }
            });
            for exit in &self.group.blocks[index].exits {
                if let Exit::To(target) = *exit {
                    if let Some(unit) = module.unit_at(target) {
                        found.push((unit as u32, after));
                    }
                }
            }
        }
        found
    }
}

/// A jump to somewhere else, taken for a call.
fn tail(module: &Module<'_>, target: Svma) -> Act {
    if let Some(import) = module.imports.stub(target) {
        return Act::Foreign(results(Some(import)));
    }
    match module.unit_at(target) {
        Some(unit) if module.units[unit].start == target => Act::Local(unit as u32),
        _ => Act::Unknown,
    }
}

fn results(import: Option<Import<'_>>) -> RegSet {
    match import {
        Some(Import::Named(name)) => prototypes::of(name).results,
        _ => prototypes::ANY.results,
    }
}

fn acts(module: &Module<'_>, unit: usize, factory: &mut InstructionInfoFactory) -> Vec<Act> {
    let code = module.code(unit);
    let start = module.units[unit].start;
    let insns = &module.decoded[unit].insns;
    let mut instruction = Instruction::default();
    let act = |(index, insn): (usize, &Insn)| {
        match insn.flow {
            Flow::Call32 => {
                return insn.target(start, code).map_or(Act::Unknown, |target| tail(module, target));
            }
            Flow::CallIndirect if crate::liveness::is_tls_descriptor_call(insns, index, code) => {
                return Act::Writes(RegSet::general(RAX));
            }
            Flow::CallIndirect => {
                let slot = insn.rip_target(start, code).and_then(|slot| module.imports.slot(slot));
                return Act::Foreign(results(slot));
            }
            _ => {}
        }
        let at = start.0 + u64::from(insn.at);
        Decoder::with_ip(64, insn.bytes(code), at, DecoderOptions::NONE).decode_out(&mut instruction);
        match instruction.mnemonic() {
            Mnemonic::Syscall => Act::Writes(RegSet(1 << RAX | 1 << RCX | 1 << 11)),
            _ => Act::Writes(effect(&instruction, factory).writes),
        }
    };
    insns.iter().enumerate().map(act).collect()
}

/// Register parts that are operands somewhere in the module.
fn present(module: &Module<'_>) -> RegSet {
    const LOW: RegSet = RegSet(0xffff << 32);
    let upper: RegSet = (0..16).fold(RegSet::EMPTY, |set, n| set | (RegSet::vector(n) - RegSet::xmm(n)));
    let new: RegSet = (16..32).fold(RegSet::MASK_REGISTERS, |set, n| set | RegSet::vector(n));
    let found = (0..module.units.len())
        .into_par_iter()
        .with_min_len(64)
        .map(|unit| {
            let code = module.code(unit);
            let mut found = RegSet::EMPTY;
            for insn in &module.decoded[unit].insns {
                let bytes = insn.bytes(code);
                // Only these encodings know of wide or many registers, and saving of extended state.
                let wide = bytes.iter().take(4).any(|&byte| matches!(byte, 0x62 | 0xc4 | 0xc5))
                    || bytes.windows(2).any(|pair| matches!(pair, [0x0f, 0xae | 0xc7]));
                if !wide {
                    continue;
                }
                let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
                for op in 0..instruction.op_count() {
                    let register = instruction.op_register(op);
                    if register.is_ymm() || register.is_zmm() {
                        found |= upper;
                    }
                    if register.is_k() || register.is_vector_register() && register.number() >= 16 {
                        found |= new | upper;
                    }
                }
                if instruction.op_mask() != Register::None {
                    found |= new;
                }
                let mnemonic = format_saves(&instruction);
                if mnemonic {
                    found |= new | upper;
                }
            }
            found
        })
        .reduce(|| RegSet::EMPTY, RegSet::union);
    found | (RegSet::ALL - RegSet::VECTORS - RegSet::MASK_REGISTERS) | LOW
}

fn format_saves(instruction: &Instruction) -> bool {
    use Mnemonic::{Xrstor, Xrstor64, Xsave, Xsave64, Xsavec, Xsavec64, Xsaveopt, Xsaveopt64};
    matches!(
        instruction.mnemonic(),
        Xrstor | Xrstor64 | Xsave | Xsave64 | Xsavec | Xsavec64 | Xsaveopt | Xsaveopt64
    )
}
