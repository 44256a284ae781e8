//! The unwind table of the result: the original's entries, moved, and one for each twin, whose rows
//! are those of its original carried over instruction by instruction; and the binary-search header
//! over them all.
//!
//! The table is one again because some readers (gdb) look for one section by its name, and some
//! (the C++ runtime) only follow the header.

use crate::error::TwinError;
use crate::layout::emit::Twins;
use crate::layout::{JUMP_SIZE, Layout};
use crate::layout::{relay::Relay, thrown::ThrownTo};
use crate::output::encoder::{Encoder, encode_pointer, uleb_size};
use crate::output::exceptions;
use image::Module;
use image::elf::cursor::{ENCODED_OMIT, encoded_size};
use image::unwind::cfi::{Step, Steps};
use image::unwind::frames::{Cie, Fde};
use rayon::prelude::*;

/// The unwind tables before they have a place.
pub(crate) struct Tables {
    /// The call-frame program of each unit's twin; empty without a twin.
    programs: Vec<Vec<u8>>,
    /// The size of each twin's exception table; 0 without one.
    exceptions: Vec<u32>,
    /// The call-frame program of each relay.
    of_relays: Vec<Vec<u8>>,
    /// Whether there is a table, behind the others, that lists nothing.
    lists_nothing: bool,
}

/// Where the tables go.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Places {
    pub header: u64,
    pub frames: u64,
    pub exceptions: u64,
}

const HEADER_SIZE: u64 = 12;

/// The address of each piece of code, and of its entry.
type Index = Vec<(u64, u64)>;

impl Tables {
    pub(crate) fn plan(twins: &Twins<'_, '_>) -> Self {
        let all = (0..twins.twins.len()).into_par_iter().with_min_len(64);
        let (programs, exceptions) = all
            .map(|unit| match &twins.twins[unit] {
                Some(twin) => (
                    carry_over(twins.module, unit, &twin.layout),
                    twins
                        .module
                        .exceptions(unit)
                        .flatten()
                        .map_or(0, |lsda| exceptions::size(twins, unit, &lsda)) as u32,
                ),
                None => (Vec::new(), 0),
            })
            .unzip();
        let of_relay = |relay: &Relay| held_at(twins.module, relay.unit as usize, relay.index as usize);
        let of_relays = twins.relays.par_iter().with_min_len(64).map(of_relay).collect();
        let lists_nothing = twins.relays.iter().any(|relay| relay.thrown == ThrownTo::Unlisted);
        Self { programs, exceptions, of_relays, lists_nothing }
    }

    pub(crate) fn header_size(twins: &Twins<'_, '_>) -> u64 {
        let originals = twins.module.frames.fdes.iter().filter(|fde| fde.length > 0).count();
        let new = entries(twins).count() + of_relays(twins).count();
        HEADER_SIZE + 8 * (originals + new) as u64
    }
    pub(crate) fn frames_size(&self, twins: &Twins<'_, '_>) -> u64 {
        let new: usize = entries(twins).map(|(unit, cie, _)| entry_size(cie, &self.programs[unit])).sum();
        let relays = of_relays(twins).zip(&self.of_relays);
        let relays: usize = relays.map(|((_, cie), program)| entry_size(cie, program)).sum();
        (twins.module.frames.bytes.len() + new + relays + 4) as u64
    }
    pub(crate) fn exceptions_size(&self) -> u64 {
        let own: u64 = self.exceptions.iter().map(|&size| u64::from(size.next_multiple_of(4))).sum();
        own + if self.lists_nothing { exceptions::NOTHING_LISTED.len() as u64 } else { 0 }
    }

    /// The three tables as bytes: header, frames, exceptions.
    pub(crate) fn write(&self, twins: &Twins<'_, '_>, places: Places) -> Result<[Vec<u8>; 3], TwinError> {
        let exceptions = self.write_exceptions(twins, places.exceptions)?;
        let (frames, index) = self.write_frames(twins, places)?;
        let header = write_header(places, index)?;
        Ok([header, frames, exceptions])
    }

    fn write_exceptions(&self, twins: &Twins<'_, '_>, place: u64) -> Result<Vec<u8>, TwinError> {
        let mut out = Vec::with_capacity(self.exceptions_size() as usize);
        for (unit, &size) in self.exceptions.iter().enumerate().filter(|&(_, &size)| size > 0) {
            let begin = out.len();
            let Some(lsda) = twins.module.exceptions(unit).flatten() else { continue };
            exceptions::write(twins, unit, &lsda, &mut out, place + begin as u64)?;
            if out.len() - begin != size as usize {
                return Err(TwinError::UnwindTable("an exception table of another size than planned"));
            }
            out.resize(out.len().next_multiple_of(4), 0);
        }
        if self.lists_nothing {
            out.extend(exceptions::NOTHING_LISTED);
        }
        Ok(out)
    }

    /// The frames, and the address of every piece of code with that of its entry.
    fn write_frames(&self, twins: &Twins<'_, '_>, places: Places) -> Result<(Vec<u8>, Index), TwinError> {
        let frames = &twins.module.frames;
        let mut out = Vec::with_capacity(self.frames_size(twins) as usize);
        out.extend_from_slice(frames.bytes);
        for cie in &frames.cies {
            if let Some(personality) = cie.personality {
                repoint(
                    &mut out,
                    personality.offset,
                    personality.encoding,
                    personality.pointer,
                    places.frames,
                )?;
            }
        }
        let mut index = Vec::with_capacity(frames.fdes.len() + twins.twins.len());
        for fde in &frames.fdes {
            let cie = &frames.cies[fde.cie as usize];
            repoint(&mut out, fde.offset + 8, cie.pointer_encoding, fde.start.0, places.frames)?;
            if let Some(lsda) = fde.lsda {
                repoint(&mut out, fde.lsda_offset, cie.lsda_encoding, lsda.0, places.frames)?;
            }
            if fde.length > 0 {
                index.push((fde.start.0, places.frames + u64::from(fde.offset)));
            }
        }
        let mut exceptions_at = places.exceptions;
        for (unit, cie, _) in entries(twins) {
            let Some(twin) = &twins.twins[unit] else { continue };
            index.push((twin.address, places.frames + out.len() as u64));
            let exceptions = if self.exceptions[unit] > 0 { exceptions_at } else { 0 };
            let code = (twin.address, u64::from(twin.layout.size));
            put_entry(&mut out, places.frames, cie, code, exceptions, &self.programs[unit])?;
            exceptions_at += u64::from(self.exceptions[unit].next_multiple_of(4));
        }
        for ((relay, cie), program) in of_relays(twins).zip(&self.of_relays) {
            index.push((relay.at, places.frames + out.len() as u64));
            let exceptions = if relay.thrown == ThrownTo::Unlisted { exceptions_at } else { 0 };
            let code = (relay.at, u64::from(JUMP_SIZE));
            put_entry(&mut out, places.frames, cie, code, exceptions, program)?;
        }
        out.extend([0; 4]);
        Ok((out, index))
    }
}

/// Units with twins, in the order in which their entries and tables are written.
fn entries<'a>(twins: &'a Twins<'_, '_>) -> impl Iterator<Item = (usize, &'a Cie, &'a Fde)> {
    let frames = &twins.module.frames;
    twins.twins.iter().enumerate().filter(|(_, twin)| twin.is_some()).filter_map(move |(unit, _)| {
        let fde = &frames.fdes[twins.module.units[unit].fde? as usize];
        Some((unit, &frames.cies[fde.cie as usize], fde))
    })
}

/// Relays, in the order in which their entries are written.
fn of_relays<'a>(twins: &'a Twins<'_, '_>) -> impl Iterator<Item = (&'a Relay, &'a Cie)> {
    let frames = &twins.module.frames;
    twins.relays.iter().filter_map(move |relay| {
        let fde = &frames.fdes[twins.module.units[relay.unit as usize].fde? as usize];
        Some((relay, &frames.cies[fde.cie as usize]))
    })
}

fn entry_size(cie: &Cie, program: &[u8]) -> usize {
    let pointer = encoded_size(cie.pointer_encoding).unwrap_or(8);
    let augmentation = augmentation_size(cie);
    let length = if cie.has_augmentation { uleb_size(augmentation as u64) } else { 0 };
    (8 + 2 * pointer + length + augmentation + program.len()).next_multiple_of(8)
}

/// Appends the entry of some code, by its address and size; `exceptions` is 0 where it has no such
/// table.
fn put_entry(
    out: &mut Vec<u8>,
    frames: u64,
    cie: &Cie,
    (address, code_size): (u64, u64),
    exceptions: u64,
    program: &[u8],
) -> Result<(), TwinError> {
    let begin = out.len();
    let size = entry_size(cie, program);
    let mut encoder = Encoder::new(out, frames + begin as u64);
    encoder.u32(size as u32 - 4);
    encoder.u32(begin as u32 + 4 - cie.offset);
    encoder.pointer(cie.pointer_encoding, address)?;
    encoder.pointer(cie.pointer_encoding & 0x0f, code_size)?;
    if cie.has_augmentation {
        encoder.uleb(augmentation_size(cie) as u64);
        if cie.lsda_encoding != ENCODED_OMIT {
            encoder.pointer(cie.lsda_encoding, exceptions)?;
        }
    }
    encoder.bytes(program);
    out.resize(begin + size, 0);
    Ok(())
}

fn augmentation_size(cie: &Cie) -> usize {
    if cie.lsda_encoding == ENCODED_OMIT { 0 } else { encoded_size(cie.lsda_encoding).unwrap_or(0) }
}

/// Encodes a pointer of the copied table anew for where the table lies now.
fn repoint(out: &mut [u8], offset: u32, encoding: u8, pointer: u64, table: u64) -> Result<(), TwinError> {
    let mut bytes = [0; 8];
    let size = encode_pointer(encoding, pointer, table + u64::from(offset), &mut bytes)?;
    out[offset as usize..offset as usize + size].copy_from_slice(&bytes[..size]);
    Ok(())
}

/// A unit's call-frame program with the distances of its twin; behind it once more, for cold parts.
fn carry_over(module: &Module<'_>, unit: usize, layout: &Layout) -> Vec<u8> {
    let Some(fde) = module.units[unit].fde else { return Vec::new() };
    let insns = &module.decoded[unit].insns;
    let program = module.frames.program(&module.frames.fdes[fde as usize].program);
    let mut program = Program { steps: program, out: Vec::new(), written: 0 };
    let Some(&(_, cold)) = layout.cold().first() else {
        program.carry_over(u32::MAX, |at| layout.offset_of(insns, at));
        return program.out;
    };
    // The cold parts begin with what held first.
    program.out.push(REMEMBER);
    let used = program.carry_over(u32::MAX, |at| layout.offset_of(insns, at));
    program.advance_to(cold);
    program.out.extend(std::iter::repeat_n(RESTORE, used.remembered + 1));
    if used.arguments {
        // It is no part of what is remembered.
        program.out.extend([ARGUMENTS_SIZE, 0]);
    }
    program.carry_over(layout.size, |at| layout.cold_offset_of(insns, at));
    program.out
}

/// A program by which all holds from the start on that holds at an instruction.
fn held_at(module: &Module<'_>, unit: usize, index: usize) -> Vec<u8> {
    let Some(fde) = module.units[unit].fde else { return Vec::new() };
    let until = u64::from(module.decoded[unit].insns[index].at);
    let (mut at, mut out) = (0u64, Vec::new());
    for step in Steps::new(module.frames.program(&module.frames.fdes[fde as usize].program)) {
        match step {
            Ok(Step::Advance(by)) => at = at.saturating_add(by),
            Ok(Step::Rule(_)) if at > until => break,
            Ok(Step::Rule(rule)) => out.extend_from_slice(rule),
            Ok(Step::Nothing) | Err(_) => {}
        }
    }
    out
}

const REMEMBER: u8 = 0x0a;
const RESTORE: u8 = 0x0b;
const ARGUMENTS_SIZE: u8 = 0x2e;

/// A call-frame program while it is carried over.
struct Program<'p> {
    steps: &'p [u8],
    out: Vec<u8>,
    /// The offset that it got to.
    written: u32,
}

/// What a program leaves behind.
#[derive(Default)]
struct Used {
    /// How many states are remembered at its end.
    remembered: usize,
    /// Whether it speaks of the size of arguments.
    arguments: bool,
}

impl Program<'_> {
    /// All that holds somewhere before `end`.
    fn carry_over(&mut self, end: u32, offset: impl Fn(u64) -> u32) -> Used {
        let mut used = Used::default();
        let mut at = 0u64;
        for step in Steps::new(self.steps) {
            match step {
                Ok(Step::Advance(by)) => at = at.saturating_add(by),
                Ok(Step::Rule(_)) if offset(at) >= end => break,
                Ok(Step::Rule(rule)) => {
                    self.advance_to(offset(at));
                    self.out.extend_from_slice(rule);
                    match rule.first() {
                        Some(&REMEMBER) => used.remembered += 1,
                        Some(&RESTORE) => used.remembered = used.remembered.saturating_sub(1),
                        Some(&ARGUMENTS_SIZE) => used.arguments = true,
                        _ => {}
                    }
                }
                Ok(Step::Nothing) | Err(_) => {}
            }
        }
        used
    }

    fn advance_to(&mut self, offset: u32) {
        advance(&mut self.out, offset - self.written);
        self.written = offset;
    }
}

fn advance(out: &mut Vec<u8>, by: u32) {
    match by {
        0 => {}
        1..=0x3f => out.push(0x40 | by as u8),
        0x40..=0xff => out.extend([0x02, by as u8]),
        0x100..=0xffff => {
            out.push(0x03);
            out.extend((by as u16).to_le_bytes());
        }
        _ => {
            out.push(0x04);
            out.extend(by.to_le_bytes());
        }
    }
}

/// The binary-search header: addresses relative to it, ascending.
fn write_header(places: Places, mut index: Index) -> Result<Vec<u8>, TwinError> {
    const FAR: TwinError = TwinError::OutOfReach("the header of the unwind table");
    index.sort_unstable();
    let relative = |address: u64| i32::try_from(address.wrapping_sub(places.header) as i64).map_err(|_| FAR);
    let mut out = Vec::with_capacity(HEADER_SIZE as usize + 8 * index.len());
    // version; how are encoded: the table's address, the number of entries, the entries
    out.extend([1, 0x1b, 0x03, 0x3b]);
    let distance = places.frames.wrapping_sub(places.header + 4) as i64;
    out.extend(i32::try_from(distance).map_err(|_| FAR)?.to_le_bytes());
    out.extend((index.len() as u32).to_le_bytes());
    for (code, entry) in index {
        out.extend(relative(code)?.to_le_bytes());
        out.extend(relative(entry)?.to_le_bytes());
    }
    Ok(out)
}
