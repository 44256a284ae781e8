//! Before a computed jump of a unit with labels, inserted code may look up in the unit's label
//! table where the jump leads, and go on in that label's twin (rules R8, R13). The values follow
//! each other: the target, where it is in the unit, what the table has of that place, the label's
//! twin; from one to the next only by the comparison that says that there is one.

use super::aboard::same_operand;
use super::accesses::set;
use super::ops::{General, Op};
use super::state::{Flags, State, Terms, Value};
use crate::liveness::set::Set;
use iced_x86::{Code, Instruction, OpKind, Register};

/// A jump through no known table, in a unit with a label table.
#[derive(Clone, Copy)]
pub(crate) struct ComputedJump {
    pub(crate) insn: Instruction,
    /// Where its unit begins, and how many bytes it has.
    pub(crate) unit: (u64, u64),
    /// Where the unit's label table lies.
    pub(crate) table: u64,
    /// What may be live before it.
    pub(crate) live: Set,
    /// Whether it is a label itself, so that it may lead to itself for ever.
    pub(crate) is_label: bool,
}

impl ComputedJump {
    /// Whether an instruction loads what the jump jumps to, through what the program left in
    /// registers.
    pub(super) fn loads(&self, insn: &Instruction, state: &State) -> Option<Op> {
        let own = |register: Register| {
            register == Register::None
                || register.is_gpr64()
                    && state.general[register.number()] == Value::Program(register.number() as General)
        };
        let same = match (insn.op1_kind(), self.insn.op0_kind()) {
            (OpKind::Register, OpKind::Register) => {
                insn.op1_register() == self.insn.op0_register() && own(insn.op1_register())
            }
            (OpKind::Memory, OpKind::Memory) => {
                same_operand(insn, &self.insn) && own(insn.memory_base()) && own(insn.memory_index())
            }
            _ => false,
        };
        let loads = insn.code() == Code::Mov_r64_rm64
            && same
            && insn.segment_prefix() == Register::None
            && !insn.has_lock_prefix()
            && !insn.has_rep_prefix()
            && !insn.has_repne_prefix();
        loads.then(|| Op::LoadTarget(insn.op0_register().number() as General))
    }

    /// What there is at an address that inserted code computes.
    pub(super) fn at(&self, address: u64) -> Option<Value> {
        match address {
            _ if address == self.unit.0 => Some(Value::UnitBegin),
            _ if address == self.table => Some(Value::LabelTable),
            _ => None,
        }
    }
}

pub(super) fn load_distance(
    state: &mut State,
    to: General,
    base: General,
    index: General,
) -> Result<(), &'static str> {
    let both = [base, index].map(|register| state.general[usize::from(register)]);
    if both != [Value::LabelTable, Value::PlaceInUnit] {
        return Err("reads memory that is not the label table's word of a place in the unit");
    }
    set(state, to, Value::DistanceOrNone)
}

pub(super) fn test(state: &mut State, of: General) -> Result<(), &'static str> {
    if state.general[usize::from(of)] != Value::DistanceOrNone {
        return Err("tests what is not the label table's");
    }
    state.flags = Flags::NoLabel;
    Ok(())
}

/// Whether the jump through S1 leads to a label in the place of `jump`: with all that may be live
/// before that being the program's, and the rest as behind a piece that falls through.
pub(super) fn leads_to_label(
    state: &State,
    jump: Option<&ComputedJump>,
    terms: &Terms,
) -> Result<(), &'static str> {
    let Some(jump) = jump.filter(|_| state.scratch[1] == Value::Label) else {
        return Err("jumps to what is no label's twin");
    };
    let own = state.lost(jump.live, terms.vector_bytes) == 0 && state.current == Value::Context;
    if !own {
        return Err("jumps to a label with something else than the program left");
    }
    if terms.scavenger && (!state.facts.budget || jump.is_label && !state.facts.met) {
        return Err("jumps to a label without a yield, or without setting the budget");
    }
    Ok(())
}
