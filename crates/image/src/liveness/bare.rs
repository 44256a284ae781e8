//! What is live in functions without unwind entry, whose conventions nobody knows: everything at every way out and at every call,
//! and all general registers everywhere, for whoever looks at them without a table. Dead is what the unit itself overwrites before it reads it.

use crate::code::effects::effect;
use crate::code::insn::{Flow, index_at};
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
    let mut live = vec![RegSet::EMPTY; insns.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for (index, insn) in insns.iter().enumerate().rev() {
            let at = |index: Option<usize>| index.map_or(RegSet::ALL, |index| live[index]);
            let before = match insn.flow {
                _ if module.decoded[unit].overlaps => RegSet::ALL,
                Flow::Next | Flow::Branch8 | Flow::Branch32 | Flow::Loop8 | Flow::Jump8 | Flow::Jump32 => {
                    let jumps = insn.target(start, code).map(|to| at(place(to.0.wrapping_sub(start.0))));
                    let follows = insn.flow.falls_through().then(|| at(place(u64::from(insn.end()))));
                    let after = jumps.unwrap_or_default() | follows.unwrap_or_default();
                    RegSet::GENERAL | effects[index].reads | (after - effects[index].kills)
                }
                _ => RegSet::ALL,
            };
            changed |= live[index] != before;
            live[index] = before;
        }
    }
    live
}
