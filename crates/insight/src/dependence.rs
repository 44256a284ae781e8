//! What the code around a load tells of how its misses follow one another.
//!
//! An address that comes from the same load, one iteration earlier, makes a chain: each miss waits
//! for the one before. Where no iteration of a loop waits for another, the core runs ahead, and
//! misses overlap until a queue is full. An address that moves by the same distance makes a stream.

use crate::code::Code;
use image::loads::{Class, Classes, Rounds, Unit};
use records::profile::Pattern;
use std::collections::{BTreeMap, HashMap};
use units::Svma;

/// The patterns of these loads of a module, as far as its code tells.
pub(crate) fn patterns(code: &Code<'_>, loads: impl IntoIterator<Item = Svma>) -> HashMap<Svma, Pattern> {
    let mut by_unit: BTreeMap<usize, Vec<Svma>> = BTreeMap::new();
    for load in loads {
        if let Some(unit) = code.module.unit_at(load) {
            by_unit.entry(unit).or_default().push(load);
        }
    }
    by_unit.into_iter().flat_map(|(unit, loads)| in_unit(code, unit, loads)).collect()
}

fn in_unit(code: &Code<'_>, index: usize, loads: Vec<Svma>) -> Vec<(Svma, Pattern)> {
    let decoded = &code.module.decoded[index];
    if decoded.overlaps || decoded.insns.is_empty() {
        return Vec::new();
    }
    let unit = Unit::of(&code.module, index);
    let calls_itself = decoded.calls.contains(&code.module.units[index].start);
    let mut classes = Classes::new(&unit, calls_itself);
    let mut rounds = Rounds::default();
    let pattern = |load: Svma| {
        let at = unit.instructions.binary_search_by_key(&load.0, iced_x86::Instruction::ip).ok()?;
        if !unit.dominators.is_reached(unit.cfg.block_of(at)) {
            return None;
        }
        let pattern = match classes.of(at as u32)? {
            Class::Chased => Pattern::Chain,
            Class::Strided => Pattern::Stream,
            Class::Pointed | Class::Gathered | Class::Scattered => {
                rounds.independent(&unit, &mut classes, at as u32).map(|_| Pattern::Parallel)?
            }
            Class::Fixed | Class::Loose | Class::Unknown => return None,
        };
        Some((load, pattern))
    };
    loads.into_iter().filter_map(pattern).collect()
}
