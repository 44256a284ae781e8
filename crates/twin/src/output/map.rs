//! The mapping from original to twin, as a section of the result that is not loaded: what a checker needs, and what
//! translates addresses. `docs/twin-format.md` describes it for those who read it; the two must change together.

use crate::layout::emit::Twins;
use crate::layout::{Form, escapes_after, size_in_form};
use crate::modes::mode::Mode;
use crate::output::encoder::put_uleb;
use crate::select::{Choice, Entry};
use rayon::prelude::*;

/// Goes up whenever a reader of the last one would misread the next.
pub const VERSION: u32 = 4;
pub const MAGIC: [u8; 8] = *b"GLNRTWIN";
/// The owner of the note by which a rewritten file is known, and its type.
pub const NOTE_OWNER: [u8; 8] = *b"Gleaner\0";
pub const NOTE_TYPE: u32 = 1;
/// The size of the whole note.
pub(crate) const NOTE_SIZE: u64 = 12 + 8 + 48;

const HEADER_SIZE: usize = 64;
const UNIT_SIZE: usize = 40;
const TABLE_SIZE: usize = 48;
const SWITCH_SIZE: usize = 16;

const GAP: u8 = 0x10;
const INSERTED: u8 = 0x20;
const RESIZED: u8 = 0x40;
const ESCAPE: u8 = 0x80;

/// The note: where the mapping lies in the file.
pub(crate) fn note(mode: Mode<'_>, offset: u64, size: u64, original_size: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(NOTE_SIZE as usize);
    out.extend((NOTE_OWNER.len() as u32).to_le_bytes());
    out.extend(48u32.to_le_bytes());
    out.extend(NOTE_TYPE.to_le_bytes());
    out.extend(NOTE_OWNER);
    out.extend(VERSION.to_le_bytes());
    out.extend(mode.number().to_le_bytes());
    let (width, quantum) = match mode {
        Mode::Identity | Mode::Poison(_) => (0, 0),
        Mode::Primary(sites) => (sites.width.bytes(), 0),
        Mode::Scavenger(sites, bounds) | Mode::Sibling(sites, bounds) => {
            (sites.width.bytes(), u64::from(bounds.quantum))
        }
    };
    for word in [offset, size, original_size, width | quantum << 32, 0] {
        out.extend(word.to_le_bytes());
    }
    out
}

/// The section.
pub(crate) fn write(twins: &Twins<'_, '_>, choices: &[Choice], mode: Mode<'_>) -> Vec<u8> {
    let units: Vec<usize> = (0..twins.twins.len()).filter(|&unit| twins.twins[unit].is_some()).collect();
    let streams: Vec<Vec<u8>> = units.par_iter().with_min_len(64).map(|&unit| stream(twins, unit)).collect();
    let tables: usize = twins.twins.iter().flatten().map(|twin| twin.tables.len()).sum();
    let units_at = HEADER_SIZE;
    let tables_at = units_at + UNIT_SIZE * units.len();
    let switches_at = tables_at + TABLE_SIZE * tables;
    let switches: usize = twins.twins.iter().flatten().map(|twin| twin.inserted.switches().len()).sum();
    let streams_at = switches_at + SWITCH_SIZE * switches;
    let size = streams_at + streams.iter().map(Vec::len).sum::<usize>();

    let mut out = Vec::with_capacity(size);
    out.extend(MAGIC);
    out.extend(VERSION.to_le_bytes());
    out.extend(mode.number().to_le_bytes());
    for number in [units.len(), tables, units_at, tables_at, switches, switches_at] {
        out.extend((number as u64).to_le_bytes());
    }
    let mut stream_at = streams_at as u64;
    for (&unit, stream) in units.iter().zip(&streams) {
        let Some(twin) = &twins.twins[unit] else { continue };
        let patch = match choices[unit] {
            Choice::Twin(Entry::Patched(at)) => at,
            _ => u32::MAX,
        };
        out.extend(twins.module.units[unit].start.0.to_le_bytes());
        out.extend(twin.address.to_le_bytes());
        out.extend(stream_at.to_le_bytes());
        out.extend(twins.module.units[unit].size.to_le_bytes());
        out.extend(twin.layout.size.to_le_bytes());
        out.extend((twins.module.decoded[unit].insns.len() as u32).to_le_bytes());
        out.extend(patch.to_le_bytes());
        stream_at += stream.len() as u64;
    }
    for (&unit, twin) in units.iter().filter_map(|unit| Some((unit, twins.twins[*unit].as_ref()?))) {
        let start = twins.module.units[unit].start.0;
        for table in &twin.tables {
            out.extend((start + u64::from(table.table.jump_at)).to_le_bytes());
            out.extend((start + u64::from(table.table.load_at)).to_le_bytes());
            out.extend(table.table.table.0.to_le_bytes());
            out.extend(table.address.to_le_bytes());
            out.extend(table.table.base.unwrap_or(0).to_le_bytes());
            out.extend((table.table.targets.len() as u32).to_le_bytes());
            out.extend(u32::from(table.table.entry_size).to_le_bytes());
        }
    }
    for twin in units.iter().filter_map(|&unit| twins.twins[unit].as_ref()) {
        for &(index, switch) in twin.inserted.switches() {
            let part = |begin: u32, at: u32| twin.address + u64::from(begin + at);
            let cold = twin.layout.cold_of(index);
            out.extend(part(twin.layout.offsets[index as usize], switch.at).to_le_bytes());
            out.extend(part(cold, switch.resume).to_le_bytes());
        }
    }
    for stream in &streams {
        out.extend_from_slice(stream);
    }
    out
}

fn stream(twins: &Twins<'_, '_>, unit: usize) -> Vec<u8> {
    let insns = &twins.module.decoded[unit].insns;
    let Some(twin) = &twins.twins[unit] else { return Vec::new() };
    let code = twins.module.code(unit);
    let mut out = Vec::with_capacity(insns.len() + 8);
    let mut changed = twin.layout.changed().iter().peekable();
    let mut end = 0;
    for (index, insn) in insns.iter().enumerate() {
        let form = match changed.next_if(|&&(next, _)| next == index as u32) {
            Some(&(_, form)) => form,
            None => Form::Same,
        };
        let inserted = twin.inserted.size_before(index);
        let size = size_in_form(*insn, form, code);
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        out.push(
            insn.len
                | flag(insn.at != end, GAP)
                | flag(inserted > 0, INSERTED)
                | flag(size != u32::from(insn.len), RESIZED)
                | flag(escapes_after(insns, index), ESCAPE),
        );
        if insn.at != end {
            put_uleb(&mut out, u64::from(insn.at - end) << 6 | u64::from(twin.layout.padding_before(index)));
        }
        if inserted > 0 {
            put_uleb(&mut out, u64::from(inserted));
        }
        if size != u32::from(insn.len) {
            put_uleb(&mut out, u64::from(size));
        }
        end = insn.end();
    }
    put_uleb(&mut out, twin.layout.cold().len() as u64);
    let mut last = 0;
    for (index, size) in twin.inserted.cold_sizes() {
        put_uleb(&mut out, u64::from(index - last));
        put_uleb(&mut out, u64::from(size));
        last = index;
    }
    out
}
