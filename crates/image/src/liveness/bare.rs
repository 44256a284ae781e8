//! What is live in functions without unwind entry, whose calling conventions are unknown:
//! everything at every exit and at every call, and all general registers everywhere, for unwinders
//! that read them without a table. Dead is what the unit itself overwrites before it reads it.

use crate::code::effects::effect;
use crate::code::insn::{Flow, index_at, index_behind};
use crate::code::regs::RegSet;
use crate::module::Module;
use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};

/// What is live before each instruction of a unit.
pub(super) fn live(module: &Module<'_>, unit: usize) -> Vec<RegSet> {
    let (start, code, insns) = (module.units[unit].start, module.code(unit), &module.decoded[unit].insns);
    let mut factory = InstructionInfoFactory::new();
    let effects: Vec<_> = insns
        .iter()
        .map(|insn| {
            effect(&Decoder::with_ip(64, insn.bytes(code), 0, DecoderOptions::NONE).decode(), &mut factory)
        })
        .collect();
    let place = |at: u64| u32::try_from(at).ok().and_then(|at| index_at(insns, at));
    let transfers: Vec<Transfer> = insns
        .iter()
        .enumerate()
        .map(|(index, insn)| match insn.flow {
            _ if module.decoded[unit].overlaps => Transfer::UNKNOWN,
            Flow::Next | Flow::Branch8 | Flow::Branch32 | Flow::Loop8 | Flow::Jump8 | Flow::Jump32 => {
                let jumps = insn.target(start, code).map(|to| place(to.0.wrapping_sub(start.0)));
                let follows = insn.flow.falls_through().then(|| index_behind(insns, index));
                if jumps == Some(None) || follows == Some(None) {
                    // Everything is live where it goes to; what it overwrites itself is not.
                    let adds = RegSet::GENERAL | effects[index].reads | (RegSet::ALL - effects[index].kills);
                    return Transfer { adds, ..Transfer::UNKNOWN };
                }
                Transfer {
                    adds: RegSet::GENERAL | effects[index].reads,
                    keeps: !effects[index].kills,
                    next: [jumps.flatten(), follows.flatten()].map(|to| to.map_or(NOWHERE, |to| to as u32)),
                }
            }
            _ => Transfer::UNKNOWN,
        })
        .collect();
    let mut live = vec![RegSet::EMPTY; insns.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for (index, Transfer { adds, keeps, next }) in transfers.iter().enumerate().rev() {
            let [jumps, follows] = next.map(|to| live.get(to as usize).copied().unwrap_or_default());
            let before = *adds | ((jumps | follows) & *keeps);
            changed |= live[index] != before;
            live[index] = before;
        }
    }
    live
}

/// What is live before an instruction: `adds | (after & keeps)`, with what is live at the
/// instructions it may go on at.
struct Transfer {
    adds: RegSet,
    keeps: RegSet,
    next: [u32; 2],
}

const NOWHERE: u32 = u32::MAX;

impl Transfer {
    const UNKNOWN: Self = Self { adds: RegSet::ALL, keeps: RegSet::EMPTY, next: [NOWHERE; 2] };
}
