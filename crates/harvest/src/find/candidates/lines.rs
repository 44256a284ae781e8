//! Which accesses share a line, and which loads can share a yield.

use iced_x86::{ConditionCode, Instruction, Mnemonic, OpKind, Register};
use image::code::regs::RegSet;
use image::loads::{Place, Region, Unit};
use std::collections::{HashMap, HashSet};

/// The size of a cache line of every x86-64 processor.
const LINE: u64 = 64;

/// What tells that two accesses are to one object: base and index registers, the definitions of
/// them that may hold, scale.
#[derive(PartialEq, Eq, Hash, Clone)]
struct Pointer {
    registers: Vec<(u8, Vec<u32>, bool)>,
    scale: u32,
}

/// An index that is the outcome of a comparison selects among neighbours.
fn has_small_index(unit: &Unit, at: u32) -> bool {
    let Some(index) = Place::of(unit.instructions[at as usize].memory_index()) else { return false };
    let everywhere = Region { unit, around: None };
    let last = everywhere.reaching(index, at);
    let is_outcome = |&at: &u32| {
        // Compilers widen the outcome, which is one byte.
        let instruction = &unit.instructions[at as usize];
        if instruction.mnemonic() != Mnemonic::Movzx || instruction.op1_kind() != OpKind::Register {
            return is_outcome(instruction);
        }
        let Some(from) = Place::of(instruction.op1_register().full_register()) else { return false };
        let last = everywhere.reaching(from, at);
        !last.from_outside && last.definitions.iter().all(|&at| is_outcome(&unit.instructions[at as usize]))
    };
    !last.from_outside && !last.definitions.is_empty() && last.definitions.iter().all(is_outcome)
}

fn is_outcome(instruction: &Instruction) -> bool {
    let tells =
        instruction.code().condition_code() != ConditionCode::None && instruction.op0_register().size() == 1;
    let clears = instruction.mnemonic() == Mnemonic::Xor
        && instruction.op1_kind() == OpKind::Register
        && instruction.op0_register() == instruction.op1_register();
    tells || clears
}

/// The distances from its pointer that an access may have.
fn reach(unit: &Unit, at: u32) -> (i64, i64) {
    let instruction = &unit.instructions[at as usize];
    let first = instruction.memory_displacement64() as i64;
    let small = has_small_index(unit, at);
    (first, first + if small { i64::from(instruction.memory_index_scale()) } else { 0 })
}

/// The registers that make an access's pointer.
fn pointer_registers(unit: &Unit, at: u32) -> Vec<Register> {
    let instruction = &unit.instructions[at as usize];
    let index = instruction.memory_index();
    let mut registers = vec![instruction.memory_base()];
    if index != Register::None && !has_small_index(unit, at) {
        registers.push(index);
    }
    registers
}

/// For each of these accesses, whether one before it on every way has fetched its line.
pub(super) fn behind_another(unit: &Unit, places: &[u32]) -> Vec<bool> {
    let mut by_pointer: HashMap<Pointer, Vec<usize>> = HashMap::new();
    for (number, &at) in places.iter().enumerate() {
        by_pointer.entry(pointer(unit, at)).or_default().push(number);
    }
    let mut behind = vec![false; places.len()];
    for members in by_pointer.values() {
        for (second, &later) in members.iter().enumerate() {
            let near = |other: usize| {
                let (a, b) = (reach(unit, places[other]), reach(unit, places[later]));
                a.1.max(b.1).abs_diff(a.0.min(b.0)) < LINE
            };
            behind[later] = members[..second].iter().chain(&members[second + 1..]).any(|&other| {
                !behind[other] && near(other) && comes_before(unit, places[other], places[later])
            });
        }
    }
    behind
}

fn pointer(unit: &Unit, at: u32) -> Pointer {
    let region = Region { unit, around: None };
    let instruction = &unit.instructions[at as usize];
    let registers = pointer_registers(unit, at);
    let scale = if registers.len() > 1 { instruction.memory_index_scale() } else { 1 };
    let registers = registers
        .into_iter()
        .filter_map(Place::of)
        .map(|place| {
            let last = region.reaching(place, at);
            let Place::General(number) = place else { unreachable!("registers are general") };
            (number, last.definitions.clone(), last.from_outside)
        })
        .collect();
    Pointer { registers, scale }
}

/// Whether every way to `later` leads through `earlier` with nothing behind it that changes the
/// pointer.
fn comes_before(unit: &Unit, earlier: u32, later: u32) -> bool {
    let (from, to) = (unit.cfg.block_of(earlier as usize) as u32, unit.cfg.block_of(later as usize) as u32);
    let pointer = pointer_registers(unit, later);
    let registers = pointer.into_iter().fold(RegSet::EMPTY, |all, register| all | RegSet::of(register));
    if from == to {
        return earlier < later && unit.is_same_until(registers, earlier, later);
    }
    if !unit.dominators.dominates(from as usize, to as usize) {
        return false;
    }
    // Back from `later`, all ways end at `earlier`.
    let mut seen: HashSet<u32> = HashSet::from([to]);
    let mut work = vec![to];
    while let Some(block) = work.pop() {
        let bounds = unit.cfg.blocks[block as usize];
        let (first, end) = match block {
            _ if block == from => (earlier, bounds.end),
            _ if block == to => (bounds.first, later),
            _ => (bounds.first, bounds.end),
        };
        if !unit.is_same_until(registers, first, end) {
            return false;
        }
        if block != from {
            work.extend(unit.cfg.edges_to(block as usize).map(|edge| edge.from).filter(|&b| seen.insert(b)));
        }
    }
    true
}

fn registers(unit: &Unit, at: u32) -> RegSet {
    let instruction = &unit.instructions[at as usize];
    RegSet::of(instruction.memory_base()) | RegSet::of(instruction.memory_index())
}

/// For each access the number of its group: those of a block whose addresses are known at the
/// group's first.
pub(super) fn groups(unit: &Unit, places: &[u32], behind: &[bool]) -> Vec<u32> {
    let mut next = 0;
    let mut leader: Option<(u32, u32)> = None;
    let mut groups = Vec::with_capacity(places.len());
    for (&at, &behind) in places.iter().zip(behind) {
        let joins = leader.filter(|&(_, first)| {
            !behind
                && unit.cfg.block_of(first as usize) == unit.cfg.block_of(at as usize)
                && unit.is_same_until(registers(unit, at), first, at)
        });
        let group = joins.map_or(next, |(group, _)| group);
        if joins.is_none() {
            next += 1;
            if !behind {
                leader = Some((group, at));
            }
        }
        groups.push(group);
    }
    groups
}
