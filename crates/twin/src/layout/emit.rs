//! The bytes of a twin, once every twin has its place.
//!
//! An instruction is copied as it stands; only displacements change (and short branches that no
//! longer reach become long ones). So whatever an instruction does, its copy does.

use crate::error::TwinError;
use crate::layout::insertions::{Insertions, Reference};
use crate::layout::relay::{self, Relay};
use crate::layout::span::Span;
use crate::layout::{
    InstructionForm, JUMP_SIZE, LINE, Layout, displacement_size, escapes_after, is_enterable, modrm_at,
    slot_of,
};
use image::Module;
use image::code::insn::{Flow, Insn, index_at};
use image::code::jump_table::JumpTable;
use image::elf::bytes::u32_at;
use std::collections::HashMap;
use units::Svma;

/// A recognised jump table and where its twin lies.
#[derive(Clone, Debug)]
pub(crate) struct TwinTable {
    pub table: JumpTable,
    pub address: u64,
}

/// A unit's twin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Twin {
    pub layout: Layout,
    pub inserted: Insertions,
    pub tables: Vec<TwinTable>,
    /// Where its label table lies, if it has one.
    pub label_table: Option<u64>,
    pub address: u64,
}

/// All twins of a module with their places.
pub(crate) struct Twins<'a, 'd> {
    pub module: &'a Module<'d>,
    /// One for each unit.
    pub twins: Vec<Option<Twin>>,
    /// What comes before the jump of every escape.
    pub before_escape: Vec<u8>,
    /// Where all twins and relays lie, once they do.
    pub text: Span,
    /// By unit and instruction, ascending.
    pub relays: Vec<Relay>,
}

/// A trap: where nobody comes.
pub(crate) const INT3: u8 = 0xcc;
const TOO_FAR: TwinError = TwinError::OutOfReach("the twins");

impl Twins<'_, '_> {
    /// The twin of the instruction at this address, if a branch from anywhere may lead there.
    pub(crate) fn enterable(&self, target: Svma) -> Option<u64> {
        let unit = self.module.unit_at(target)?;
        let twin = self.twins[unit].as_ref()?;
        let at = (target.0 - self.module.units[unit].start.0) as u32;
        if !is_enterable(self.module, unit, at) {
            return None;
        }
        let index = index_at(&self.module.decoded[unit].insns, at)?;
        Some(twin.address + u64::from(twin.layout.offsets[index]))
    }

    /// Where a branch of this unit's twin leads: to a twin, or else to the original.
    fn destination(&self, unit: usize, target: Svma) -> u64 {
        let at = target.0.wrapping_sub(self.module.units[unit].start.0);
        if at < u64::from(self.module.units[unit].size) {
            let index = index_at(&self.module.decoded[unit].insns, at as u32);
            if let (Some(twin), Some(index)) = (&self.twins[unit], index) {
                return twin.address + u64::from(twin.layout.offsets[index]);
            }
            return target.0;
        }
        self.enterable(target).unwrap_or(target.0)
    }

    /// The entries of a unit's twin tables, as bytes.
    pub(crate) fn table_bytes(&self, unit: usize, table: &JumpTable) -> Result<Vec<u8>, TwinError> {
        let mut bytes = Vec::with_capacity(table.targets.len() * usize::from(table.entry_size));
        for &target in &table.targets {
            let to = self.destination(unit, target);
            match table.base {
                Some(base) => {
                    let distance = i32::try_from(to.wrapping_sub(base) as i64).map_err(|_| TOO_FAR)?;
                    bytes.extend(distance.to_le_bytes());
                }
                None => bytes.extend(to.to_le_bytes()),
            }
        }
        Ok(bytes)
    }

    /// The unit's labels that have twins, ascending: offsets in the original.
    pub(crate) fn labels(&self, unit: usize) -> impl Iterator<Item = u32> + '_ {
        let insns = &self.module.decoded[unit].insns;
        self.module.labels(unit).filter(|&at| index_at(insns, at).is_some())
    }

    /// A unit's label table, which lies at an address, as bytes.
    pub(crate) fn label_table_bytes(&self, unit: usize, table: u64) -> Result<Vec<u8>, TwinError> {
        let mut bytes = vec![0; label_table_size(self.module, unit) as usize];
        for at in self.labels(unit) {
            let to = self.destination(unit, Svma(self.module.units[unit].start.0 + u64::from(at)));
            let distance = i32::try_from(to.wrapping_sub(table) as i64).map_err(|_| TOO_FAR)?;
            bytes[4 * at as usize..][..4].copy_from_slice(&distance.to_le_bytes());
        }
        Ok(bytes)
    }

    /// Writes a unit's twin; `out` has exactly its size.
    pub(crate) fn emit(&self, unit: usize, out: &mut [u8]) -> Result<(), TwinError> {
        let Some(twin) = &self.twins[unit] else { return Ok(()) };
        let start = self.module.units[unit].start;
        let code = self.module.code(unit);
        let insns = &self.module.decoded[unit].insns;
        let mut writer = Writer { out, at: 0, address: twin.address };
        let mut changed = twin.layout.changed().iter().peekable();
        let mut cold = twin.layout.cold().iter().peekable();
        let mut relays = relay::of_unit(&self.relays, unit).iter().peekable();
        let mut end = 0;
        let by_load: HashMap<u32, &TwinTable> =
            twin.tables.iter().map(|table| (table.table.load_at, table)).collect();
        for (index, insn) in insns.iter().enumerate() {
            let form = match changed.next_if(|&&(next, _)| next == index as u32) {
                Some(&(_, form)) => form,
                None => InstructionForm::Same,
            };
            if insn.at != end {
                writer.put(&[INT3; LINE as usize][..twin.layout.padding_before(index) as usize]);
            }
            end = insn.end();
            let begin = writer.at;
            writer.put(twin.inserted.before(index));
            let other = cold.next_if(|&&(of, _)| of == index as u32).map_or(0, |&(_, offset)| offset);
            for (at, to) in twin.inserted.references_before(index) {
                writer.refer(begin + at, to, (self.text, twin), other)?;
            }
            if let Some(relay) = relays.next_if(|relay| relay.index == index as u32) {
                let distance = begin + relay.switch as usize + 1;
                writer.refer(distance, Reference::Address(relay.at), (self.text, twin), other)?;
            }
            let bytes = insn.bytes(code);
            match form {
                InstructionForm::WideDisplacement => {
                    let table = by_load.get(&insn.at).ok_or(TOO_FAR)?;
                    put_load(&mut writer, bytes, table)?;
                }
                InstructionForm::ThroughSlot => {
                    let slot = slot_of(self.module, unit, *insn).ok_or(TOO_FAR)?;
                    let operation = if insn.flow == Flow::Call32 { 0x15 } else { 0x25 };
                    writer.put(&[0xff, operation, 0, 0, 0, 0]);
                    writer.fix32(writer.at - 4, slot.0)?;
                }
                InstructionForm::Replaced(_) => writer.put(twin.inserted.replacement(index).unwrap_or(&[])),
                InstructionForm::Long => {
                    let target = insn.target(start, code).ok_or(TOO_FAR)?;
                    put_long(&mut writer, *insn, bytes, self.destination(unit, target))?;
                }
                InstructionForm::Same => {
                    let begin = writer.at;
                    writer.put(bytes);
                    if insn.rip_displacement != 0 {
                        let target = insn.rip_target(start, code).ok_or(TOO_FAR)?;
                        writer.fix32(begin + usize::from(insn.rip_displacement), target.0)?;
                    } else if let Some(target) = insn.target(start, code) {
                        let to = self.destination(unit, target);
                        if insn.flow.displacement_size() == 4 {
                            writer.fix32(writer.at - 4, to)?;
                        } else {
                            writer.fix8(to)?;
                        }
                    } else if insn.flow == Flow::JumpIndirect || !twin.tables.is_empty() {
                        if let Some(table) = by_load.get(&insn.at) {
                            writer.at = begin;
                            put_load(&mut writer, bytes, table)?;
                        }
                    }
                }
            }
            if escapes_after(insns, index) {
                let next = Svma(start.0 + u64::from(insn.end()));
                let to = self.enterable(next).unwrap_or(next.0);
                writer.put(&self.before_escape);
                writer.put(&[0xe9, 0, 0, 0, 0]);
                writer.fix32(writer.at - 4, to)?;
            }
        }
        for (nth, &(index, offset)) in twin.layout.cold().iter().enumerate() {
            let (bytes, references) = twin.inserted.cold(nth);
            debug_assert_eq!(writer.at, offset as usize);
            writer.put(bytes);
            for (at, to) in references {
                let other = twin.layout.offsets[index as usize];
                writer.refer(offset as usize + at, to, (self.text, twin), other)?;
            }
        }
        debug_assert_eq!(writer.at, twin.layout.size as usize);
        Ok(())
    }

    /// The jump that is put at an original's entry, to the twin of what it takes the place of.
    pub(crate) fn entry_patch(&self, unit: usize, at: u32) -> Result<[u8; JUMP_SIZE as usize], TwinError> {
        let from = Svma(self.module.units[unit].start.0 + u64::from(at));
        let to = self.destination(unit, from);
        let distance = to.wrapping_sub(from.0 + u64::from(JUMP_SIZE)) as i64;
        let distance = i32::try_from(distance).map_err(|_| TOO_FAR)?.to_le_bytes();
        Ok([0xe9, distance[0], distance[1], distance[2], distance[3]])
    }
}

/// The bytes of a unit's label table: four for each of the unit's.
pub(crate) fn label_table_size(module: &Module<'_>, unit: usize) -> u64 {
    4 * u64::from(module.units[unit].size)
}

struct Writer<'o> {
    out: &'o mut [u8],
    at: usize,
    address: u64,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.out[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }
    /// Sets the 32-bit displacement at `place` of the instruction that ends here.
    fn fix32(&mut self, place: usize, to: u64) -> Result<(), TwinError> {
        let distance = to.wrapping_sub(self.address + self.at as u64) as i64;
        let distance = i32::try_from(distance).map_err(|_| TOO_FAR)?;
        self.out[place..place + 4].copy_from_slice(&distance.to_le_bytes());
        Ok(())
    }
    /// Fills in four bytes of inserted code, the other part of whose piece begins at offset
    /// `other`.
    fn refer(
        &mut self,
        place: usize,
        to: Reference,
        (text, twin): (Span, &Twin),
        other: u32,
    ) -> Result<(), TwinError> {
        let end = self.address + place as u64 + 4;
        let distance = |to: u64| i32::try_from(to.wrapping_sub(end) as i64).map_err(|_| TOO_FAR);
        let number = match to {
            Reference::TextBegin => distance(text.address)?,
            Reference::TextSize => i32::try_from(text.size).map_err(|_| TOO_FAR)?,
            Reference::Address(to) => distance(to)?,
            Reference::LabelTable => distance(twin.label_table.ok_or(TOO_FAR)?)?,
            Reference::Across(to) => distance(self.address + u64::from(other + to))?,
            Reference::Before(index) => {
                distance(self.address + u64::from(twin.layout.offsets[index as usize]))?
            }
            Reference::At(index) => {
                let at = twin.layout.offsets[index as usize] + twin.inserted.size_before(index as usize);
                distance(self.address + u64::from(at))?
            }
        };
        self.out[place..place + 4].copy_from_slice(&number.to_le_bytes());
        Ok(())
    }
    /// Sets the 8-bit displacement that ends the instruction that ends here.
    fn fix8(&mut self, to: u64) -> Result<(), TwinError> {
        let distance = to.wrapping_sub(self.address + self.at as u64) as i64;
        self.out[self.at - 1] = i8::try_from(distance).map_err(|_| TOO_FAR)? as u8;
        Ok(())
    }
}

fn put_long(writer: &mut Writer<'_>, insn: Insn, bytes: &[u8], to: u64) -> Result<(), TwinError> {
    let opcode = bytes[bytes.len() - 2];
    let prefixes = &bytes[..bytes.len() - 2];
    match insn.flow {
        Flow::Jump8 => {
            writer.put(prefixes);
            writer.put(&[0xe9, 0, 0, 0, 0]);
        }
        Flow::Branch8 => {
            writer.put(prefixes);
            writer.put(&[0x0f, opcode + 0x10, 0, 0, 0, 0]);
        }
        _ => {
            writer.put(&bytes[..bytes.len() - 1]);
            writer.put(&[2, 0xeb, JUMP_SIZE as u8, 0xe9, 0, 0, 0, 0]);
        }
    }
    writer.fix32(writer.at - 4, to)
}

/// The load of a jump table, its displacement moved by the distance from the original table to its
/// twin: so whatever registers hold, they hold the same as in the original.
fn put_load(writer: &mut Writer<'_>, bytes: &[u8], table: &TwinTable) -> Result<(), TwinError> {
    let modrm = modrm_at(bytes);
    let has_sib = bytes[modrm] & 7 == 4;
    let size = displacement_size(bytes);
    let at = modrm + 1 + usize::from(has_sib);
    let old = match size {
        4 => u32_at(bytes, at).map_or(0, |value| i64::from(value as i32)),
        1 => i64::from(bytes[at] as i8),
        _ => 0,
    };
    let new = old.wrapping_add(table.address.wrapping_sub(table.table.table.0) as i64);
    let new = i32::try_from(new).map_err(|_| TOO_FAR)?;
    writer.put(&bytes[..modrm]);
    writer.put(&[if size == 4 { bytes[modrm] } else { bytes[modrm] & 0x3f | 0x80 }]);
    writer.put(&bytes[modrm + 1..at]);
    writer.put(&new.to_le_bytes());
    writer.put(&bytes[at + size..]);
    Ok(())
}

/// Whether the load of a unit's table can be led to a twin table: a plain load of a one-byte
/// opcode.
pub(crate) fn is_movable(module: &Module<'_>, unit: usize, table: &JumpTable) -> bool {
    let decoded = &module.decoded[unit];
    let Some(index) = index_at(&decoded.insns, table.load_at) else { return false };
    let insn = &decoded.insns[index];
    let bytes = insn.bytes(module.code(unit));
    let modrm = modrm_at(bytes);
    let Some(&form) = bytes.get(modrm) else { return false };
    matches!(bytes[modrm - 1], 0x8b | 0x63 | 0xff) && form >> 6 != 3 && insn.rip_displacement == 0
}

pub(crate) fn movable_tables(module: &Module<'_>, unit: usize) -> Vec<JumpTable> {
    let tables = module.decoded[unit].tables.iter();
    tables.filter(|table| is_movable(module, unit, table)).cloned().collect()
}
