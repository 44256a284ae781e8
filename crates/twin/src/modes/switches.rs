//! Where prefetches stand in a rewritten file, and the one byte that switches each off: so they can
//! be tried in a program that runs.
//!
//! ```text
//!   0f 18 …   prefetcht0 M      on      0f 1f …   nop M        off
//!   77 n      ja on             on      eb n      jmp on       off: nothing is read or fetched
//! ```
//!
//! The file has them switched on, which is what is proven. Off, the same code does less. All of
//! `0f 18` to `0f 1f` with an operand in memory has been without effect but for hints since the
//! Pentium Pro, and on AMD's processors of 64 bits.

use crate::TwinError;
use crate::modes::indexed;
use crate::modes::prefetch::{Ahead, Prefetches};
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic};
use image::{Image, Module};
use std::collections::BTreeMap;
use twin_format::{Mapping, Note};
use units::Svma;

/// One prefetch in a rewritten file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The load in the original.
    pub load: u64,
    pub ahead: Ahead,
    /// Where in the file the byte is.
    pub offset: u64,
    pub on: u8,
    pub off: u8,
}

const NOP: u8 = 0x1f;
const JUMP: u8 = 0xeb;

/// The switches of all prefetches that were asked for and could be inserted.
pub fn switches(original: &[u8], rewritten: &[u8], wanted: &Prefetches) -> Result<Vec<Switch>, TwinError> {
    let module = Module::around(original, None, wanted.keys().copied().map(Svma))?;
    // In the order in which they were inserted before each instruction: by load, then as asked for.
    let mut expected: BTreeMap<u64, Vec<(u64, Ahead, i64)>> = BTreeMap::new();
    for (&load, forms) in wanted {
        let Some(unit) = module.unit_at(Svma(load)) else { continue };
        let all: Vec<Instruction> = module.instructions(unit).collect();
        let Some(at) = all.iter().position(|one| one.ip() == load) else { continue };
        for &ahead in forms {
            let (before, bytes) = match ahead {
                Ahead::Bytes(bytes) => (load, i64::from(bytes)),
                Ahead::Steps(steps) => match indexed::indexed(&all, at) {
                    Some(indexed) => (all[indexed.index_load].ip(), indexed.step * i64::from(steps)),
                    None => continue,
                },
                // It is not there, and needs no switch.
                Ahead::Never => continue,
            };
            expected.entry(before).or_default().push((load, ahead, bytes));
        }
    }
    let inserted = inserted(rewritten, &expected)?;
    let mut switches = Vec::new();
    for (before, expected) in expected {
        let mut there = inserted.get(&before).map_or(&[][..], Vec::as_slice).iter().peekable();
        // One that could not be inserted is passed over.
        for (load, ahead, bytes) in expected {
            let is_indexed = matches!(ahead, Ahead::Steps(_));
            if let Some(found) = there.next_if(|found| (found.is_indexed, found.bytes) == (is_indexed, bytes))
            {
                let Inserted { offset, on, off, .. } = *found;
                switches.push(Switch { load, ahead, offset, on, off });
            }
        }
    }
    Ok(switches)
}

struct Inserted {
    is_indexed: bool,
    /// How far ahead of what the instruction behind it reads.
    bytes: i64,
    offset: u64,
    on: u8,
    off: u8,
}

/// What stands before these instructions of the original, by their addresses.
fn inserted(
    rewritten: &[u8],
    wanted: &BTreeMap<u64, Vec<(u64, Ahead, i64)>>,
) -> Result<BTreeMap<u64, Vec<Inserted>>, TwinError> {
    let image = Image::parse(rewritten)?;
    let note = image.notes().find(|(owner, kind, _)| Note::is_ours(owner, *kind));
    let mut found = BTreeMap::new();
    let Some((_, _, contents)) = note else { return Ok(found) };
    let mapping = Mapping::decode(Note::decode(contents)?.mapping(rewritten)?)?;
    for place in mapping.units.iter().flat_map(twin_format::Unit::places) {
        if !wanted.contains_key(&place.original) {
            continue;
        }
        let (Some(code), Some(offset)) = (
            image.bytes_at(Svma(place.twin), (place.twin_end - place.twin) as usize),
            image.file_offset(Svma(place.twin)),
        ) else {
            continue;
        };
        let all: Vec<Instruction> =
            Decoder::with_ip(64, code, place.twin, DecoderOptions::NONE).into_iter().collect();
        let (before, copy): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.ip() < place.copy);
        let Some(copy) = copy.first() else { continue };
        found.insert(place.original, of_one(&before, copy, place.twin, offset.0));
    }
    Ok(found)
}

/// The prefetches before one copy of an instruction.
fn of_one(before: &[Instruction], copy: &Instruction, twin: u64, offset: u64) -> Vec<Inserted> {
    let place = |instruction: &Instruction| offset + (instruction.ip() - twin);
    let ahead_of = |instruction: &Instruction| {
        (instruction.memory_displacement64() as i64).wrapping_sub(copy.memory_displacement64() as i64)
    };
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(instruction) = before.get(at) {
        let on = match instruction.code() {
            Code::Ja_rel8_64 => 0x77,
            Code::Jb_rel8_64 => 0x72,
            _ => 0,
        };
        if on != 0 {
            let bytes = before.get(at + 1).map_or(0, ahead_of);
            found.push(Inserted { is_indexed: true, bytes, offset: place(instruction), on, off: JUMP });
            // What it jumps over is part of it.
            let end = instruction.near_branch64();
            at += before[at..].iter().take_while(|one| one.ip() < end).count();
            continue;
        }
        if instruction.mnemonic() == Mnemonic::Prefetcht0 {
            let (at, bytes) = (opcode(instruction), ahead_of(instruction));
            found.push(Inserted {
                is_indexed: false,
                bytes,
                offset: place(instruction) + at,
                on: 0x18,
                off: NOP,
            });
        }
        at += 1;
    }
    found
}

/// Where in a prefetch its second byte of opcode is: behind prefixes and 0x0f.
fn opcode(instruction: &Instruction) -> u64 {
    // Registers from r8 on need a prefix, and there is no other one.
    let is_high = |register: iced_x86::Register| register.is_gpr64() && register.number() >= 8;
    let has_prefix = is_high(instruction.memory_base()) || is_high(instruction.memory_index());
    1 + u64::from(has_prefix)
}
