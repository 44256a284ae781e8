//! Candidates: the loads of a module that might wait for memory, as static analysis sees them.
//!
//! Each load of a loop is classed by where its address comes from (`classes.rs`, by way of `sources.rs`). Of accesses to one
//! object, that is by the same pointer and close to each other, the first fetches the line for all. Loads of one block
//! whose addresses are known at the first of them form a group, which one yield can serve. Where the rounds of a loop do not
//! wait for one another (`rounds.rs`), the core overlaps their misses by itself.
//!
//! Of a primary also the loops that only wait by turning round (`spins.rs`).

mod classes;
mod lines;
mod rounds;
mod sources;
mod spins;
mod unit;

use crate::names::Names;
use crate::planner::{Candidate, Subject};
use classes::Classes;
use iced_x86::{Formatter, IntelFormatter, Register};
use image::groups::RelyOn;
use image::liveness::{Knowledge, Liveness};
use image::regs::{Flag, RegSet};
use image::{ImageError, Module};
use rayon::prelude::*;
use records::plan::{Live, LoadClass, Prefetch, Role};
use rounds::Rounds;
use sources::Region;
use unit::Unit;
use units::Bytes;

/// Looks through a module. `debug` is its separate debug information, if any.
pub fn look_through(
    path: &str,
    role: Role,
    data: &[u8],
    debug: Option<&[u8]>,
) -> Result<Subject, ImageError> {
    let module = Module::analyse(data, debug)?;
    let liveness = Liveness::with(&module, Knowledge::OfCallers, &RelyOn::EVERYTHING);
    let names = Names::of(&module, data, debug);
    let found: Vec<InUnit> = (0..module.units.len())
        .into_par_iter()
        .with_min_len(16)
        .map(|unit| in_unit(&module, unit, &liveness.before[unit]))
        .collect();
    let accesses = found.iter().map(|found| found.accesses).sum();
    let mut group = 0;
    let mut candidates = Vec::new();
    let mut spins = Vec::new();
    for (unit, InUnit { found, waits, .. }) in found.into_iter().enumerate() {
        if role == Role::Primary && !waits.is_empty() {
            let around = Unit::of(&module, unit);
            spins.extend(
                waits
                    .into_iter()
                    .map(|wait| wait.told(&module, unit, &around, &liveness.before[unit], &names)),
            );
        }
        let groups = found.iter().map(|found| found.group + 1).max().unwrap_or(0);
        candidates.extend(found.into_iter().map(|found| found.candidate(&module, unit, group, &names)));
        group += groups;
    }
    Ok(Subject {
        path: path.to_owned(),
        role,
        build_id: module.image.build_id().map(crate::cache::hex),
        content: crate::cache::checksum(data),
        size: Bytes(data.len() as u64),
        functions: module.units.len(),
        accesses,
        candidates,
        spins,
    })
}

/// A candidate before it has names.
struct Found {
    address: u64,
    instruction: String,
    class: LoadClass,
    written: bool,
    depth: u32,
    round: Option<u32>,
    live: RegSet,
    /// Within its unit.
    group: u32,
    same_line: bool,
}

impl Found {
    fn candidate(self, module: &Module<'_>, unit: usize, first_group: u32, names: &Names<'_>) -> Candidate {
        Candidate {
            place: names.place(module, unit, self.address, self.instruction),
            class: self.class,
            prefetch: if self.written { Prefetch::Write } else { Prefetch::Read },
            loop_depth: self.depth,
            round: self.round,
            live: told(self.live),
            group: first_group + self.group,
            same_line: self.same_line,
            barred: module.units[unit].fde.is_none().then(|| "its function has no twin".to_owned()),
        }
    }
}

/// What there is in a unit.
#[derive(Default)]
struct InUnit {
    /// How many accesses to computed addresses it makes.
    accesses: usize,
    found: Vec<Found>,
    waits: Vec<spins::Wait>,
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
            && !unit::is_thread_local(&unit.instructions[*at as usize])
    };
    let accesses: Vec<u32> = (0..unit.instructions.len() as u32).filter(computed).collect();
    let calls_itself = decoded.calls.contains(&module.units[index].start);
    let mut classes = Classes::new(&unit, calls_itself);
    let mut rounds = Rounds::default();
    let mut formatter = IntelFormatter::new();
    let mut found: Vec<(u32, Found)> = Vec::new();
    for &at in &accesses {
        let instruction = &unit.instructions[at as usize];
        let block = unit.cfg.block_of(at as usize);
        if !unit.dominators.is_reached(block) {
            continue;
        }
        let Some(class) = classes.of(at) else { continue };
        let mut text = String::new();
        formatter.format(instruction, &mut text);
        found.push((
            at,
            Found {
                address: instruction.ip(),
                instruction: text,
                class,
                written: unit.access(at).is_some_and(|access| access.written),
                depth: unit.loops.depth(block),
                round: rounds.independent(&unit, &mut classes, at),
                live: live.get(at as usize).copied().unwrap_or(RegSet::ALL),
                group: 0,
                same_line: false,
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
    let waits = spins::of(module, &unit, live);
    InUnit { accesses: accesses.len(), found: found.into_iter().map(|(_, found)| found).collect(), waits }
}

fn told(live: RegSet) -> Live {
    let registers = [
        Register::RAX,
        Register::RCX,
        Register::RDX,
        Register::RBX,
        Register::RBP,
        Register::RSI,
        Register::RDI,
        Register::R8,
        Register::R9,
        Register::R10,
        Register::R11,
        Register::R12,
        Register::R13,
        Register::R14,
        Register::R15,
    ];
    let flags =
        [Flag::Carry, Flag::Parity, Flag::Adjust, Flag::Zero, Flag::Sign, Flag::Overflow].map(RegSet::flag);
    Live {
        general: registers
            .into_iter()
            .filter(|&register| live.meets(RegSet::of(register)))
            .map(|register| format!("{register:?}").to_lowercase())
            .collect(),
        vectors: (0..32).filter(|&number| live.meets(RegSet::vector(number))).count() as u32,
        masks: (0..8).filter(|&number| live.meets(RegSet::mask(number))).count() as u32,
        flags: flags.into_iter().any(|flag| live.meets(flag)),
    }
}

#[cfg(test)]
mod tests;
