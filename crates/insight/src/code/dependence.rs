//! What the code around a load tells of how its misses follow one another.
//!
//! An address that comes from the same load, one iteration earlier, makes a chain: each miss waits
//! for the one before. Where no iteration of a loop waits for another, the core runs ahead, and
//! misses overlap until a queue is full. An address that moves by the same distance makes a stream.

use crate::code::cause::{Code, accesses, writes};
use iced_x86::{Instruction, Mnemonic};
use image::loads::{Classes, Loaded, Place, Region, Rounds, Unit};
use records::profile::Pattern;
use std::collections::{BTreeMap, HashMap, HashSet};
use units::Svma;
use units::load::LoadClass;

/// What the code says of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dependence {
    /// None where only samples tell.
    pub(crate) pattern: Option<Pattern>,
    /// Whether what it loads is the base or index of its next address as it is: nothing else in its
    /// loop writes that register.
    pub(crate) is_chased: bool,
    /// Its loop also waits for loads that are no part of its chain: while one waits, the core goes
    /// ahead in the others.
    pub(crate) among_chains: bool,
}

/// The patterns of these loads of a module, as far as its code tells.
pub(crate) fn patterns(code: &Code<'_>, loads: impl IntoIterator<Item = Svma>) -> HashMap<Svma, Dependence> {
    let mut by_unit: BTreeMap<usize, Vec<Svma>> = BTreeMap::new();
    for load in loads {
        if let Some(unit) = code.module.unit_at(load) {
            by_unit.entry(unit).or_default().push(load);
        }
    }
    by_unit.into_iter().flat_map(|(unit, loads)| in_unit(code, unit, loads)).collect()
}

/// Whether what a load reads is the base or index of its next address: its register is written in
/// its innermost loop by nothing but loads that go on from it, or is copied back from what it read,
/// by way of the stack where code is not optimised.
fn is_taken_as_it_is(unit: &Unit, at: usize, block: usize) -> bool {
    let register = unit.instructions[at].op0_register().full_register();
    let goes_on = |it: &Instruction| {
        it.mnemonic() == Mnemonic::Mov
            && !accesses(it).is_empty()
            && [it.memory_base(), it.memory_index()].contains(&register)
    };
    let Some(around) = unit.loops.around(block) else { return true };
    let mut in_loop = around.body.iter().flat_map(|&block| {
        let bounds = unit.cfg.blocks[block as usize];
        &unit.instructions[bounds.first as usize..bounds.end as usize]
    });
    in_loop.all(|it| !writes(it, register) || goes_on(it))
        || is_copied_back(Region { unit, around: Some(around) }, at as u32)
}

/// Whether the register that a load fills holds in front of it what the load read the last time.
fn is_copied_back(region: Region<'_>, load: u32) -> bool {
    let unit = region.unit;
    let Some(register) = Place::of(unit.instructions[load as usize].op0_register()) else { return false };
    let mut open = vec![(register, load)];
    let mut seen = HashSet::new();
    let mut comes_back = false;
    while let Some((place, before)) = open.pop() {
        for &at in &region.reaching(place, before).definitions {
            if (place, at) == (register, load) {
                comes_back = true;
            } else if seen.insert((place, at)) {
                let Some(from) = copied(unit, at) else { return false };
                open.push((from, at));
            }
        }
    }
    comes_back
}

/// What an instruction copies, whole, into a register or a slot of the stack.
fn copied(unit: &Unit, at: u32) -> Option<Place> {
    let it = &unit.instructions[at as usize];
    let (into, from) = (it.op0_register(), it.op1_register());
    match (it.mnemonic(), unit.loads_from(at)) {
        (Mnemonic::Mov, Loaded::Followed(slot)) if into.is_gpr64() => Some(slot),
        (Mnemonic::Mov, Loaded::Nothing) if from.is_gpr64() => Place::of(from),
        _ => None,
    }
}

fn in_unit(code: &Code<'_>, index: usize, loads: Vec<Svma>) -> Vec<(Svma, Dependence)> {
    let decoded = &code.module.decoded[index];
    if decoded.overlaps || decoded.insns.is_empty() {
        return Vec::new();
    }
    let unit = Unit::of(&code.module, index);
    let calls_itself = decoded.calls.contains(&code.module.units[index].start);
    let mut classes = Classes::new(&unit, calls_itself);
    let mut rounds = Rounds::default();
    // Chains by the innermost loop that they are in, each by its first load: the loads of one wait
    // for one another, however many they are.
    let mut chains: HashMap<u32, HashSet<u32>> = HashMap::new();
    let mut pattern = |load: Svma| {
        let at = unit.instructions.binary_search_by_key(&load.0, iced_x86::Instruction::ip).ok()?;
        let block = unit.cfg.block_of(at);
        if !unit.dominators.is_reached(block) {
            return None;
        }
        let pattern = match classes.of(at as u32)? {
            LoadClass::Chased => Some(Pattern::Chain),
            LoadClass::Strided => Some(Pattern::Stream),
            LoadClass::Pointed | LoadClass::Gathered | LoadClass::Scattered => {
                rounds.independent(&unit, &mut classes, at as u32).map(|_| Pattern::Parallel)
            }
            LoadClass::Fixed => None,
            LoadClass::Loose | LoadClass::Unknown => return None,
        };
        let its_loop = unit.loops.around(block).map(|around| around.header);
        if let Some(header) = its_loop.filter(|_| pattern == Some(Pattern::Chain)) {
            chains.entry(header).or_default().insert(classes.circle(at as u32));
        }
        let is_chased = pattern == Some(Pattern::Chain) && is_taken_as_it_is(&unit, at, block);
        Some((load, pattern, is_chased, its_loop))
    };
    let found: Vec<_> = loads.into_iter().filter_map(&mut pattern).collect();
    let among = |header: Option<u32>| {
        header.and_then(|header| chains.get(&header)).is_some_and(|chains| chains.len() > 1)
    };
    let with = |(load, pattern, is_chased, header)| {
        let among_chains = pattern == Some(Pattern::Chain) && among(header);
        (load, Dependence { pattern, is_chased, among_chains })
    };
    found.into_iter().map(with).collect()
}
