//! Whether a unit jumps to addresses that it computes (rule R2): those may lie inside of its entry.
//! Looked into only for units with jumps whose targets are not known at all.

use crate::container::mapping::{Table, Unit};
use crate::container::stream::Item;
use crate::decode::skipped_lock::to_the_prefix;
use iced_x86::{
    ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};

/// A set of general registers, a bit each: those that may hold what arithmetic made.
type Registers = u16;

/// What an instruction does to the set, and where it goes on.
#[derive(Clone, Copy)]
struct RegisterStep {
    /// No longer in the set.
    given: Registers,
    /// In the set from here on.
    computed: Registers,
    /// In the set from here on if any of `from` is.
    copied: Registers,
    from: Registers,
    falls_through: bool,
    /// Index of a branch's target.
    target: Option<u32>,
    /// What an unlisted indirect jump jumps to.
    jumps: Registers,
}

/// Whether any indirect jump that has no table may go where arithmetic says. Whatever enters the
/// unit by ways not seen here is taken to bring addresses only.
pub(crate) fn jumps(unit: &Unit<'_>, items: &[Item], tables: &[Table]) -> bool {
    let steps: Vec<RegisterStep> = items.iter().map(|item| step(unit, item, items, tables)).collect();
    let mut before: Vec<Registers> = vec![0; items.len()];
    let mut waiting: Vec<u32> = (0..items.len() as u32).rev().collect();
    while let Some(index) = waiting.pop() {
        let (at, step) = (index as usize, steps[index as usize]);
        let mut set = before[at] & !step.given | step.computed;
        if before[at] & step.from != 0 {
            set |= step.copied;
        }
        if before[at] & step.jumps != 0 {
            return true;
        }
        let next = (step.falls_through && items.get(at + 1).is_some_and(|next| next.at == items[at].end()))
            .then_some(index + 1);
        for to in [next, step.target].into_iter().flatten() {
            if set & !before[to as usize] != 0 {
                before[to as usize] |= set;
                waiting.push(to);
            }
        }
    }
    false
}

fn step(unit: &Unit<'_>, item: &Item, items: &[Item], tables: &[Table]) -> RegisterStep {
    let bytes = &unit.code[item.at as usize..item.end() as usize];
    let mut insn =
        Decoder::with_ip(64, bytes, unit.start + u64::from(item.at), DecoderOptions::NONE).decode();
    to_the_prefix(&mut insn, unit.code.get(item.end() as usize..).unwrap_or(&[]));
    let flow = insn.flow_control();
    let mut step = RegisterStep {
        given: 0,
        computed: 0,
        copied: 0,
        from: 0,
        falls_through: !matches!(
            flow,
            FlowControl::UnconditionalBranch
                | FlowControl::IndirectBranch
                | FlowControl::Return
                | FlowControl::Exception
        ),
        target: None,
        jumps: 0,
    };
    match flow {
        FlowControl::IndirectBranch => {
            if !tables.iter().any(|table| table.jump == insn.ip()) {
                step.jumps = bit(insn.op0_register());
            }
            return step;
        }
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
            let at = insn.near_branch64().wrapping_sub(unit.start);
            step.target =
                items.binary_search_by_key(&at, |item| u64::from(item.at)).ok().map(|index| index as u32);
            return step;
        }
        // What a callee leaves in its registers is an address or of no use as one.
        FlowControl::Call | FlowControl::IndirectCall => {
            step.given = u16::MAX;
            return step;
        }
        _ => {}
    }
    if insn.op_count() > 0 && insn.op0_kind() == OpKind::Register {
        let to = bit(insn.op0_register());
        let from = if insn.op_count() > 1 && insn.op1_kind() == OpKind::Register {
            bit(insn.op1_register())
        } else {
            0
        };
        let conditional = is_conditional_move(&insn);
        match insn.mnemonic() {
            Mnemonic::Cmp
            | Mnemonic::Test
            | Mnemonic::Push
            | Mnemonic::Bt
            | Mnemonic::Ror
            | Mnemonic::Rol => {}
            // A zero; and the C library's guarded pointers: rotated, and mixed with a word of
            // memory.
            Mnemonic::Xor | Mnemonic::Sub if to == from => step.given = to,
            Mnemonic::Xor if insn.op1_kind() == OpKind::Memory => {}
            Mnemonic::Xchg => (step.copied, step.from) = (to | from, to | from),
            Mnemonic::Mov | Mnemonic::Pop => (step.given, step.copied, step.from) = (to & !from, to, from),
            _ if conditional => (step.copied, step.from) = (to, from),
            Mnemonic::Lea if is_address(&insn) => step.given = to,
            _ => step.computed = to,
        }
    }
    step
}

/// `lea` of a place in the module, of a copy, or of a member of an object (whose address was an
/// address).
fn is_address(insn: &Instruction) -> bool {
    insn.is_ip_rel_memory_operand()
}

fn bit(register: Register) -> Registers {
    let full = register.full_register();
    if full.is_gpr64() { 1 << full.number() } else { 0 }
}

fn is_conditional_move(insn: &Instruction) -> bool {
    insn.condition_code() != ConditionCode::None && insn.op_count() == 2
}
