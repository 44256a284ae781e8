//! Candidates: the loads of a module that might wait for memory, as static analysis sees them.
//!
//! Each load of a loop is classed by where its address comes from (`image::loads`). Of accesses to
//! one object, that is by the same pointer and close to each other, the first fetches the line for
//! all. Loads of one block whose addresses are known at the first of them form a group, which one
//! yield can serve. Where the iterations of a loop do not wait for one another, the core overlaps
//! their misses by itself.

mod lines;

use crate::plan::{Candidate, Function, Saved, Subject};
use image::code::groups::RelyOn;
use image::code::regs::{Flag, RSP, RegSet};
use image::flow::cfg::Cfg;
use image::flow::loops::Loop;
use image::liveness::{Knowledge, Liveness};
use image::loads::{self, Classes, Rounds, Unit};
use image::{ImageError, Module};
use rayon::prelude::*;
use records::plan::{Prefetch, Role};
use units::Bytes;

/// Looks through a file. `debug` is its separate debug information, if any.
pub fn look_through(
    path: &str,
    role: Role,
    data: &[u8],
    debug: Option<&[u8]>,
) -> Result<Subject, ImageError> {
    let module = Module::analyse(data, debug)?;
    let liveness = Liveness::with(&module, Knowledge::OfCallers, &RelyOn::EVERYTHING);
    Ok(in_module(path, role, data, &module, &liveness))
}

/// What there is in a module. Places have no instructions nor lines of source yet.
pub fn in_module(path: &str, role: Role, data: &[u8], module: &Module<'_>, liveness: &Liveness) -> Subject {
    let found: Vec<InUnit> = (0..module.units.len())
        .into_par_iter()
        .with_min_len(16)
        .map(|unit| in_unit(module, unit, &liveness.before[unit]))
        .collect();
    let accesses = found.iter().map(|found| found.accesses).sum();
    let mut group = 0;
    let mut names = Vec::new();
    let mut candidates = Vec::new();
    for (unit, InUnit { found, .. }) in found.into_iter().enumerate() {
        if found.is_empty() {
            continue;
        }
        let groups = found.iter().map(|found| found.group + 1).max().unwrap_or(0);
        let function = names.len() as u32;
        names.push(Function { start: module.units[unit].start.0, name: name(module, unit) });
        let without_twin = module.units[unit].fde.is_none();
        candidates.extend(found.into_iter().map(|found| Candidate {
            function,
            group: group + found.group,
            without_twin,
            ..found
        }));
        group += groups;
    }
    Subject {
        path: path.to_owned(),
        role,
        build_id: module.image.build_id().map(image::elf::bytes::hex),
        content: store::cache::checksum(data),
        size: Bytes(data.len() as u64),
        functions: module.units.len(),
        accesses,
        names,
        candidates,
    }
}

fn name(module: &Module<'_>, unit: usize) -> Option<String> {
    module.name(unit).map(|name| String::from_utf8_lossy(name).into_owned())
}

/// What there is in a unit.
#[derive(Default)]
struct InUnit {
    /// How many accesses to computed addresses it makes.
    accesses: usize,
    /// With groups of their own, and no functions.
    found: Vec<Candidate>,
}

/// How many accesses to computed addresses a unit makes, and the candidates among them.
fn in_unit(module: &Module<'_>, index: usize, live: &[RegSet]) -> InUnit {
    let decoded = &module.decoded[index];
    if decoded.overlaps || decoded.insns.is_empty() {
        return InUnit::default();
    }
    let unit = Unit::of(module, index);
    let computed = |at: &u32| {
        unit.access(*at).is_some_and(|access| access.read)
            && unit.near(*at).is_none()
            && !loads::is_thread_local(&unit.instructions[*at as usize])
    };
    let accesses: Vec<u32> = (0..unit.instructions.len() as u32).filter(computed).collect();
    let calls_itself = decoded.calls.contains(&module.units[index].start);
    let mut classes = Classes::new(&unit, calls_itself);
    let mut rounds = Rounds::default();
    let mut found: Vec<(u32, Candidate)> = Vec::new();
    for &at in &accesses {
        let block = unit.cfg.block_of(at as usize);
        if !unit.dominators.is_reached(block) {
            continue;
        }
        let Some(class) = classes.of(at) else { continue };
        let written = unit.access(at).is_some_and(|access| access.written);
        found.push((
            at,
            Candidate {
                address: unit.instructions[at as usize].ip(),
                function: 0,
                class,
                prefetch: if written { Prefetch::Write } else { Prefetch::Read },
                loop_depth: unit.loops.depth(block),
                loop_size: unit.loops.around(block).map(|around| size(&unit.cfg, around)),
                round: rounds.independent(&unit, &mut classes, at),
                saved: saved(live.get(at as usize).copied().unwrap_or(RegSet::ALL)),
                group: 0,
                same_line: false,
                without_twin: false,
            },
        ));
    }
    let places: Vec<u32> = found.iter().map(|(at, _)| *at).collect();
    let behind = lines::behind_another(&unit, &places);
    let groups = lines::groups(&unit, &places, &behind);
    for (number, (_, found)) in found.iter_mut().enumerate() {
        found.same_line = behind[number];
        found.group = groups[number];
    }
    InUnit { accesses: accesses.len(), found: found.into_iter().map(|(_, found)| found).collect() }
}

/// How many instructions a loop has.
fn size(cfg: &Cfg, around: &Loop) -> u32 {
    let blocks = around.body.iter().map(|&block| &cfg.blocks[block as usize]);
    blocks.map(|block| block.end - block.first).sum()
}

/// What a yield has to save where this is live: the stack pointer has its own place.
fn saved(live: RegSet) -> Saved {
    let is_live = |number, set: fn(u32) -> RegSet| live.meets(set(number));
    let flags =
        [Flag::Carry, Flag::Parity, Flag::Adjust, Flag::Zero, Flag::Sign, Flag::Overflow].map(RegSet::flag);
    Saved {
        general: (0..16)
            .filter(|&number| number != RSP && is_live(number, RegSet::general))
            .fold(0, |all, number| all | 1 << number),
        vectors: (0..32).filter(|&number| is_live(number, RegSet::vector)).count() as u8,
        masks: (0..8).filter(|&number| is_live(number, RegSet::mask)).count() as u8,
        flags: flags.into_iter().any(|flag| live.meets(flag)),
    }
}

#[cfg(test)]
mod tests;
