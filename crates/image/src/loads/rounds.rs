//! Whether the rounds of a loop wait for one another. Where they do not, the core runs ahead by
//! itself: many of their misses are served at once, and each costs a part of its time. A yield
//! there would end that, and gain little.
//!
//! Rounds are taken to be independent where the loop is innermost, calls nobody, locks nothing,
//! follows no pointers from round to round, and no branch in it hangs on what a load brought that
//! may miss: a guess about one goes wrong as late as its miss is served. As with classes, nothing
//! here has to be right for a program to stay right.

use super::classes::Classes;
use super::place::{Loaded, Place};
use super::reaching::Region;
use super::unit::Unit;
use crate::flow::loops::Loop;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind};
use std::collections::HashMap;
use units::load::LoadClass;

/// What is known of loops, by their headers: each is looked through once, however many loads it
/// has.
#[derive(Default)]
pub struct Rounds {
    known: HashMap<u32, Option<u32>>,
}

impl Rounds {
    /// How many instructions a round of the loop around an instruction has, if its rounds are
    /// independent.
    pub fn independent(&mut self, unit: &Unit, classes: &mut Classes<'_>, at: u32) -> Option<u32> {
        let around = unit.loops.around(unit.cfg.block_of(at as usize))?;
        *self.known.entry(around.header).or_insert_with(|| of_loop(unit, classes, around))
    }
}

fn of_loop(unit: &Unit, classes: &mut Classes<'_>, around: &Loop) -> Option<u32> {
    let has_inner = unit.loops.all.iter().any(|l| l.header != around.header && around.holds(l.header));
    if has_inner {
        return None;
    }
    let mut instructions = 0;
    for &block in &around.body {
        let bounds = unit.cfg.blocks[block as usize];
        instructions += bounds.end - bounds.first;
        for at in bounds.first..bounds.end {
            let follows =
                unit.loads_from(at) == Loaded::Elsewhere && classes.of(at) == Some(LoadClass::Chased);
            if unit.is_call(at) || follows || is_locked(&unit.instructions[at as usize], unit, at) {
                return None;
            }
        }
        if !is_known_early(unit, classes, around, bounds.first, bounds.end) {
            return None;
        }
    }
    Some(instructions)
}

fn is_locked(instruction: &Instruction, unit: &Unit, at: u32) -> bool {
    instruction.has_lock_prefix()
        || instruction.mnemonic() == Mnemonic::Xchg && unit.access(at).is_some()
        || matches!(instruction.mnemonic(), Mnemonic::Mfence | Mnemonic::Lfence | Mnemonic::Cpuid)
}

/// Whether the way on from this block hangs on nothing that may miss.
fn is_known_early(unit: &Unit, classes: &mut Classes<'_>, around: &Loop, first: u32, end: u32) -> bool {
    let Some(last) = end.checked_sub(1).filter(|last| *last >= first) else { return false };
    match unit.instructions[last as usize].flow_control() {
        FlowControl::Next | FlowControl::UnconditionalBranch => return true,
        FlowControl::ConditionalBranch => {}
        _ => return false,
    }
    let sets_flags = |at: &u32| unit.instructions[*at as usize].rflags_modified() != 0;
    let Some(decides) = (first..last).rev().find(sets_flags) else { return false };
    if unit.loads_from(decides) == Loaded::Elsewhere && may_miss(classes, decides) {
        return false;
    }
    let region = Region { unit, around: Some(around) };
    let instruction = &unit.instructions[decides as usize];
    (0..instruction.op_count())
        .filter(|op| instruction.op_kind(*op) == OpKind::Register)
        .map(|op| Place::of(instruction.op_register(op)))
        .all(|place| {
            let Some(place) = place else { return false };
            let from = region.of(place, decides);
            !from.unknown && !from.loads.iter().any(|load| may_miss(classes, *load))
        })
}

/// Prefetchers run ahead of what is strided.
fn may_miss(classes: &mut Classes<'_>, load: u32) -> bool {
    !matches!(classes.of(load), Some(LoadClass::Strided | LoadClass::Fixed))
}
