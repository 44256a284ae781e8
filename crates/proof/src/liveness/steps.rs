//! The instructions of one unit, judged one by one: what each reads and overwrites, and where
//! control goes from it.

use super::effects::{self, Effect};
use super::linkage::{Linkage, Outside};
use super::set::{RED_ZONE, Set, touched, unwinding};
use crate::container::mapping::Table;
use crate::container::stream::Item;
use crate::decode::skipped_lock::to_the_prefix;
use crate::unwind::cfa::Rows;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register,
};

/// How an instruction ends. Whether the next one follows in memory is looked at elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::enum_variant_names, reason = "a dead end is what it is called")]
pub(crate) enum End {
    Next,
    /// To [`LivenessStep::to`], or on.
    Branch,
    Jump,
    /// By this one of the unit's listed jump tables.
    Table(u32),
    /// Anywhere.
    Open,
    Return,
    Stop,
    /// Of [`LivenessStep::to`] in this module.
    Call,
    /// Of a function that is known by the ABI alone.
    Foreign,
    /// By a pointer, of a function of any convention.
    Pointer,
    /// Of something that may read and keep all registers.
    Keeps,
    /// Of a function that never returns.
    DeadEnd,
}

impl End {
    pub(crate) fn goes_on(self) -> bool {
        !matches!(self, Self::Jump | Self::Table(_) | Self::Open | Self::Return | Self::Stop)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct LivenessStep {
    pub(crate) effect: Effect,
    pub(crate) end: End,
    pub(crate) to: u64,
    /// It has the form of a call of a thread-local variable's descriptor, which the ABI lays down
    /// for linkers: `call [rax]`.
    by_descriptor: bool,
    /// What an unwinder reads if it comes by here.
    pub(crate) unwinding: Set,
    /// Put on the stack, and got from there: a function may give back what it found in registers.
    pub(crate) saves: Set,
    pub(crate) restores: Set,
}

/// The instructions of a unit or of a function without twin.
pub(crate) struct Source<'s, 'd> {
    pub(crate) start: u64,
    pub(crate) code: &'d [u8],
    pub(crate) tables: &'s [Table],
    /// What the unwind table says of it.
    pub(crate) rows: Option<Rows<'d>>,
}

/// Judges all of `items`.
pub(crate) fn read(
    source: Source<'_, '_>,
    items: &[Item],
    linkage: &Linkage<'_, '_>,
    steps: &mut Vec<LivenessStep>,
) {
    steps.clear();
    let Source { start, code, tables, mut rows } = source;
    let mut factory = InstructionInfoFactory::new();
    let mut insn = Instruction::default();
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let mut stack = Stack::default();
    let mut finds_thread_local = false;
    let mut here = (u32::MAX, false);
    for item in items {
        if decoder.position() != item.at as usize {
            decoder.set_ip(start + u64::from(item.at));
            if decoder.set_position(item.at as usize).is_err() {
                return;
            }
        }
        decoder.decode_out(&mut insn);
        to_the_prefix(&mut insn, code.get(item.end() as usize..).unwrap_or(&[]));
        match rows.as_mut().map(|rows| rows.advance(u64::from(item.at))) {
            Some(Some(false)) if !steps.is_empty() => {}
            Some(Some(_)) => {
                here = rows.as_ref().map_or((u32::MAX, false), |rows| (rows.read_here(), rows.is_bare()));
            }
            _ => (rows, here) = (None, (u32::MAX, false)),
        }
        let (end, to) = end(&insn, tables, here.1, linkage);
        stack.look(&insn, end);
        finds_thread_local |= insn.mnemonic() == Mnemonic::Lea
            && insn.is_ip_rel_memory_operand()
            && linkage.is_thread_local(insn.ip_rel_memory_address());
        let mut effect = effects::of(&insn, &mut factory);
        if end == End::Stop {
            // The program does not see it read anything; what looks at a stopped program may.
            effect.reads = 0;
        }
        let (saves, restores) = by_stack(&insn);
        let bytes = code.get(item.at as usize..item.end() as usize);
        let by_descriptor = bytes.is_some_and(|bytes| bytes.ends_with(&[0xff, 0x10]));
        steps.push(LivenessStep {
            saves,
            restores,
            effect,
            end,
            to,
            by_descriptor,
            unwinding: unwinding(here.0),
        });
    }
    if stack.may_use_red_zone() {
        for step in &mut *steps {
            step.effect.reads |= RED_ZONE;
        }
    }
    if finds_thread_local {
        // One of the calls finds a variable, and the caller keeps what it likes in registers
        // meanwhile.
        for step in steps.iter_mut().filter(|step| step.end == End::Pointer && step.by_descriptor) {
            step.end = End::Keeps;
        }
    }
}

/// What an instruction moves to the stack, and from there.
fn by_stack(insn: &Instruction) -> (Set, Set) {
    let register = |operand| {
        if insn.op_kind(operand) == OpKind::Register { touched(insn.op_register(operand)) } else { 0 }
    };
    match insn.mnemonic() {
        Mnemonic::Push => return (register(0), 0),
        Mnemonic::Pop => return (0, register(0)),
        _ => {}
    }
    if insn.op_count() != 2 || !matches!(insn.memory_base(), Register::RSP | Register::RBP) {
        return (0, 0);
    }
    match (insn.op0_kind(), insn.op1_kind()) {
        (OpKind::Memory, OpKind::Register) => (register(1), 0),
        (OpKind::Register, OpKind::Memory) => (0, register(0)),
        _ => (0, 0),
    }
}

/// What a unit does with the stack pointer.
#[derive(Default)]
struct Stack {
    reaches_below: bool,
    is_copied: bool,
    calls: bool,
}

impl Stack {
    fn look(&mut self, insn: &Instruction, end: End) {
        self.reaches_below |= insn.memory_base() == Register::RSP
            && ((insn.memory_displacement64() as i64) < 0 || insn.memory_index() != Register::None);
        self.is_copied |= insn.op_count() > 1
            && insn.op1_kind() == OpKind::Register
            && insn.op1_register() == Register::RSP
            || insn.mnemonic() == Mnemonic::Lea && insn.memory_base() == Register::RSP;
        self.calls |= matches!(end, End::Call | End::Foreign | End::Pointer | End::Keeps | End::DeadEnd);
    }
    /// A function that calls nothing may reach below the stack pointer by any copy of it.
    fn may_use_red_zone(&self) -> bool {
        self.reaches_below || self.is_copied && !self.calls
    }
}

fn end(insn: &Instruction, tables: &[Table], bare: bool, linkage: &Linkage<'_, '_>) -> (End, u64) {
    let direct = insn.op_count() > 0 && insn.op0_kind() == OpKind::NearBranch64;
    let to = if direct { insn.near_branch64() } else { 0 };
    let foreign = |place| if linkage.is_by_the_abi(place) { End::Foreign } else { End::Pointer };
    let slot = || {
        let place = insn.is_ip_rel_memory_operand().then(|| insn.ip_rel_memory_address());
        match place.and_then(|place| linkage.slot(place)) {
            Some(Outside::NeverReturns) => End::DeadEnd,
            _ => place.map_or(End::Pointer, foreign),
        }
    };
    let end = match insn.flow_control() {
        // Others return to elsewhere than their caller, and hand over any registers they like.
        FlowControl::Return if bare => End::Return,
        FlowControl::UnconditionalBranch if direct => End::Jump,
        FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend if direct => End::Branch,
        FlowControl::IndirectBranch => {
            let table = tables.iter().position(|table| table.jump == insn.ip());
            table.map_or(End::Open, |table| End::Table(table as u32))
        }
        FlowControl::Call if direct => match linkage.stub(to) {
            Some(Outside::NeverReturns) => End::DeadEnd,
            Some(Outside::Returns) => foreign(to),
            None if linkage.is_dead_end(to) => End::DeadEnd,
            None => End::Call,
        },
        FlowControl::IndirectCall => slot(),
        FlowControl::Exception => End::Stop,
        FlowControl::Return | FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => End::Open,
        _ if insn.mnemonic() == Mnemonic::Hlt => End::Stop,
        // System calls and the like, which the decoder calls calls, come back with what they read
        // known.
        _ => End::Next,
    };
    (end, to)
}
