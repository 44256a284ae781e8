//! Whether a unit jumps to addresses that it computes (rule R2): those may lie inside of its entry.

use crate::mapping::{Table, Unit};
use crate::stream::Item;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

/// Where a register's value comes from, as far as the text before tells, whatever the control flow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// From the caller, memory, or a constant of the program's: whatever it is, it was an address before.
    Given,
    Computed,
}

/// Whether any indirect jump that has no table goes where arithmetic says.
pub(crate) fn jumps(unit: &Unit<'_>, items: &[Item], tables: &[Table]) -> bool {
    let mut origins = [Origin::Given; 16];
    let mut insn = Instruction::default();
    items.iter().any(|item| {
        let bytes = &unit.code[item.at as usize..item.end() as usize];
        Decoder::with_ip(64, bytes, unit.start + u64::from(item.at), DecoderOptions::NONE).decode_out(&mut insn);
        if insn.flow_control() == FlowControl::IndirectBranch {
            let listed = tables.iter().any(|table| table.jump == insn.ip());
            return !listed && general(insn.op0_register()).is_some_and(|at| origins[at] == Origin::Computed);
        }
        if insn.op_count() > 0 && insn.op0_kind() == OpKind::Register {
            let from = (insn.op_count() > 1 && insn.op1_kind() == OpKind::Register).then(|| insn.op1_register());
            let origin = match insn.mnemonic() {
                Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push | Mnemonic::Bt | Mnemonic::Call => return false,
                Mnemonic::Mov | Mnemonic::Cmove | Mnemonic::Cmovne => {
                    from.and_then(general).map_or(Origin::Given, |from| origins[from])
                }
                Mnemonic::Pop => Origin::Given,
                Mnemonic::Lea if insn.is_ip_rel_memory_operand() => Origin::Given,
                _ => Origin::Computed,
            };
            if let Some(at) = general(insn.op0_register()) {
                origins[at] = origin;
            }
        }
        false
    })
}

fn general(register: Register) -> Option<usize> {
    let full = register.full_register();
    full.is_gpr64().then(|| full.number())
}
