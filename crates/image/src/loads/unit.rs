//! A unit as candidates are looked for in it: its instructions, what each writes, its loops.

use super::found::Found;
use super::place::{Base, Loaded, Place};
use crate::Module;
use crate::code::effects::effect_by;
use crate::code::regs::{RSP, RegSet, abi};
use crate::flow::cfg::Cfg;
use crate::flow::dominators::Dominators;
use crate::flow::loops::Loops;
use iced_x86::{Instruction, InstructionInfo, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

/// General registers whose values are followed: all but the stack pointer.
const FOLLOWED: RegSet = RegSet(RegSet::GENERAL.0 & !(1 << RSP));

/// The memory operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub read: bool,
    pub written: bool,
}

pub struct Unit {
    pub cfg: Cfg,
    pub dominators: Dominators,
    pub loops: Loops,
    pub instructions: Vec<Instruction>,
    writes: Vec<RegSet>,
    accesses: Vec<Option<Access>>,
    framed: bool,
    /// Computed jumps lead from label to label in circles that no loop shows: what is there at one
    /// was left by another.
    pub has_labels: bool,
    pub found: Found,
}

impl Unit {
    pub fn of(module: &Module<'_>, unit: usize) -> Self {
        let decoded = &module.decoded[unit];
        let cfg = module.cfg(unit);
        let dominators = Dominators::of(&cfg);
        let loops = Loops::of(&cfg, &dominators);
        let mut factory = InstructionInfoFactory::new();
        let mut instructions = Vec::with_capacity(decoded.insns.len());
        let mut writes = Vec::with_capacity(decoded.insns.len());
        let mut accesses = Vec::with_capacity(decoded.insns.len());
        for (insn, instruction) in decoded.insns.iter().zip(module.instructions(unit)) {
            let info = factory.info(&instruction);
            let mut written = effect_by(&instruction, info).writes;
            if insn.flow.is_call() {
                written |= abi::CLOBBERED;
            }
            writes.push(written);
            accesses.push(access(&instruction, info));
            instructions.push(instruction);
        }
        let framed = instructions.iter().any(sets_frame_pointer);
        let has_labels = module.labels(unit).next().is_some();
        let found = Found::default();
        Self { cfg, dominators, loops, instructions, writes, accesses, framed, has_labels, found }
    }

    pub fn access(&self, at: u32) -> Option<Access> {
        self.accesses[at as usize]
    }

    /// Tells the places of which an instruction changes what they hold.
    pub fn defined_by(&self, at: u32, mut tell: impl FnMut(Place)) {
        let mut general = (self.writes[at as usize] & FOLLOWED).0;
        while general != 0 {
            tell(Place::General(general.trailing_zeros() as u8));
            general &= general - 1;
        }
        if self.accesses[at as usize].is_some_and(|access| access.written) {
            self.near(at).into_iter().for_each(tell);
        }
    }

    pub fn is_call(&self, at: u32) -> bool {
        let instruction = &self.instructions[at as usize];
        instruction.is_call_near() || instruction.is_call_near_indirect()
    }

    pub fn loads_from(&self, at: u32) -> Loaded {
        let instruction = &self.instructions[at as usize];
        match self.accesses[at as usize] {
            Some(access) if access.read && !is_thread_local(instruction) => {
                self.near(at).map_or(Loaded::Elsewhere, Loaded::Followed)
            }
            _ => Loaded::Nothing,
        }
    }

    /// The place in the frame, or at a fixed address, that an operand means.
    pub fn near(&self, at: u32) -> Option<Place> {
        let instruction = &self.instructions[at as usize];
        if instruction.is_ip_rel_memory_operand() {
            return Some(Place::Fixed(instruction.ip_rel_memory_address()));
        }
        if instruction.memory_index() != Register::None {
            // An array in the frame: near all the same, though not one value.
            let framed = instruction.memory_base() == Register::RBP && self.framed;
            return (instruction.memory_base() == Register::RSP || framed)
                .then_some(Place::Slot(Base::Stack, i64::MIN));
        }
        let displacement = instruction.memory_displacement64();
        match instruction.memory_base() {
            Register::RSP => Some(Place::Slot(Base::Stack, displacement as i64)),
            Register::RBP if self.framed => Some(Place::Slot(Base::Frame, displacement as i64)),
            Register::None => Some(Place::Fixed(displacement)),
            _ => None,
        }
    }

    /// Whether an instruction's address registers hold the same from one instruction to a later one
    /// of its block.
    pub fn is_same_until(&self, registers: RegSet, from: u32, to: u32) -> bool {
        (from..to).all(|at| !self.is_call(at) && !self.writes[at as usize].meets(registers))
    }
}

pub fn is_thread_local(instruction: &Instruction) -> bool {
    matches!(instruction.segment_prefix(), Register::FS | Register::GS)
}

fn access(instruction: &Instruction, info: &InstructionInfo) -> Option<Access> {
    let explicit = (0..instruction.op_count()).any(|op| instruction.op_kind(op) == OpKind::Memory);
    if !explicit || matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop) {
        return None;
    }
    let mut found = Access { read: false, written: false };
    for used in info.used_memory() {
        if used.base() != instruction.memory_base() || used.index() != instruction.memory_index() {
            continue; // the stack of a push or call
        }
        let access = used.access();
        found.read |= matches!(
            access,
            OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        );
        found.written |= matches!(
            access,
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        );
    }
    (found.read || found.written).then_some(found)
}

fn sets_frame_pointer(instruction: &Instruction) -> bool {
    instruction.op_count() == 2
        && instruction.op0_register() == Register::RBP
        && match instruction.mnemonic() {
            Mnemonic::Mov => instruction.op1_register() == Register::RSP,
            Mnemonic::Lea => instruction.memory_base() == Register::RSP,
            _ => false,
        }
}
