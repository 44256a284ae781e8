//! What the code around a load tells of how its misses follow one another.
//!
//! An address that comes from the same load, one iteration earlier, makes a chain: each miss waits
//! for the one before. Where no iteration of a loop waits for another, the core runs ahead, and
//! misses overlap until a queue is full. An address that moves by the same distance makes a stream.

use crate::code::cause::{Code, accesses, writes};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use image::loads::{Classes, Rounds, Unit};
use records::profile::Pattern;
use std::collections::{BTreeMap, HashMap};
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
    /// Its loop follows other chains, too: while one waits, the core goes ahead in the others.
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
/// its innermost loop by nothing but loads that go on from it, or goes through a slot of the stack,
/// as in code that is not optimised.
fn is_taken_as_it_is(unit: &Unit, at: usize, block: usize) -> bool {
    let register = unit.instructions[at].op0_register().full_register();
    let Some(around) = unit.loops.around(block) else { return true };
    let in_loop = || around.body.iter().flat_map(|&block| in_block(unit, block as usize));
    let goes_on = |it: &Instruction| {
        it.mnemonic() == Mnemonic::Mov
            && !accesses(it).is_empty()
            && [it.memory_base(), it.memory_index()].contains(&register)
    };
    if in_loop()
        .filter(|&number| writes(&unit.instructions[number], register))
        .all(|number| goes_on(&unit.instructions[number]))
    {
        return true;
    }
    // The last write of a register in front of an instruction of the same block.
    let written_by = |number: usize, register: Register| {
        let first = unit.cfg.blocks[unit.cfg.block_of(number)].first as usize;
        (first..number).rev().find(|&before| writes(&unit.instructions[before], register))
    };
    let slot_of = |operand: u32, it: &Instruction| {
        let is_move = it.mnemonic() == Mnemonic::Mov && it.op_kind(operand) == OpKind::Memory;
        let is_slot =
            matches!(it.memory_base(), Register::RBP | Register::RSP) && it.memory_index() == Register::None;
        (is_move && is_slot).then(|| (it.memory_base(), it.memory_displacement64()))
    };
    let slot = written_by(at, register).and_then(|from| slot_of(1, &unit.instructions[from]));
    let Some(slot) = slot else { return false };
    let mut stores = in_loop()
        .filter(|&number| slot_of(0, &unit.instructions[number]) == Some(slot))
        .map(|number| (number, unit.instructions[number].op1_register()))
        .peekable();
    let is_of_it =
        |(number, from): (usize, Register)| from == register && written_by(number, register) == Some(at);
    stores.peek().is_some() && stores.all(is_of_it)
}

/// The numbers of a block's instructions.
fn in_block(unit: &Unit, block: usize) -> std::ops::Range<usize> {
    let bounds = unit.cfg.blocks[block];
    bounds.first as usize..bounds.end as usize
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
    // Chains by the innermost loop that they are in.
    let mut chains: HashMap<u32, u32> = HashMap::new();
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
            *chains.entry(header).or_default() += 1;
        }
        let is_chased = pattern == Some(Pattern::Chain) && is_taken_as_it_is(&unit, at, block);
        Some((load, pattern, is_chased, its_loop))
    };
    let found: Vec<_> = loads.into_iter().filter_map(&mut pattern).collect();
    let among = |header: Option<u32>| header.is_some_and(|header| chains.get(&header) > Some(&1));
    let with = |(load, pattern, is_chased, header)| {
        let among_chains = pattern == Some(Pattern::Chain) && among(header);
        (load, Dependence { pattern, is_chased, among_chains })
    };
    found.into_iter().map(with).collect()
}
