//! What the module calls in others: slots of the global offset table by name, and the PLT stubs
//! that jump through them.

use crate::Image;
use crate::elf::abi;
use crate::elf::relocations::{Relocation, dynamic_symbol_name};
use crate::unwind::frames::Frames;
use std::collections::{HashMap, HashSet};
use units::Svma;

/// What a slot of the global offset table will hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Import<'d> {
    /// The function (or variable) of this name, wherever it is defined.
    Named(&'d [u8]),
    /// What a resolver in this module picks.
    Indirect,
}

/// Imported names by the slots and the stubs that lead to them.
#[derive(Clone, Debug, Default)]
pub struct Imports<'d> {
    slots: HashMap<u64, Import<'d>>,
    stubs: HashMap<u64, Import<'d>>,
}

impl<'d> Imports<'d> {
    pub fn of(image: &Image<'d>, frames: &Frames<'_>, relocations: &[Relocation]) -> Self {
        let mut slots = HashMap::new();
        for relocation in relocations {
            let import = match relocation.kind {
                abi::R_X86_64_JUMP_SLOT | abi::R_X86_64_GLOB_DAT => {
                    dynamic_symbol_name(image, relocation.symbol).map(Import::Named)
                }
                abi::R_X86_64_IRELATIVE => Some(Import::Indirect),
                _ => None,
            };
            if let Some(import) = import {
                slots.insert(relocation.place.0, import);
            }
        }
        let stubs = stubs(image, frames, &slots);
        Self { slots, stubs }
    }

    /// What the slot at this address will hold.
    pub fn slot(&self, address: Svma) -> Option<Import<'d>> {
        self.slots.get(&address.0).copied()
    }
    /// What the PLT stub at this address leads to.
    pub fn stub(&self, address: Svma) -> Option<Import<'d>> {
        self.stubs.get(&address.0).copied()
    }
    /// The slot through which the PLT stub at this address jumps.
    pub fn slot_behind(&self, image: &Image<'d>, stub: Svma) -> Option<Svma> {
        self.stub(stub)?;
        image.load_at(stub).filter(|load| load.is_executable() && !load.is_writable())?;
        jump_through(image.bytes_from(stub)?, stub.0).map(|(slot, _)| Svma(slot))
    }
}

/// Whether linkers put stubs into a section of this name.
pub fn is_of_stubs(section: &[u8]) -> bool {
    section.starts_with(b".plt") || section == b".iplt"
}

/// The address from which `[endbr64] [bnd] jmp [rip + slot]` at the beginning of these bytes, which
/// lie at `address`, takes where it jumps to, and how many bytes that is.
fn jump_through(code: &[u8], address: u64) -> Option<(u64, u64)> {
    let bare = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(code);
    let bare = bare.strip_prefix(&[0xf2]).unwrap_or(bare);
    let [0xff, 0x25, rest @ ..] = bare else { return None };
    let displacement = i32::from_le_bytes(*rest.first_chunk()?);
    let size = (code.len() - rest.len()) as u64 + 4;
    Some((address.wrapping_add(size).wrapping_add_signed(i64::from(displacement)), size))
}

/// Finds `[endbr64] [bnd] jmp [rip + slot]` on every 8-byte boundary of the sections that linkers
/// put stubs in; in a file without section headers on every one of its code, but for functions of
/// their own that consist of just that jump.
fn stubs<'d>(
    image: &Image<'d>,
    frames: &Frames<'_>,
    slots: &HashMap<u64, Import<'d>>,
) -> HashMap<u64, Import<'d>> {
    let mut pieces: Vec<(u64, &[u8])> = Vec::new();
    let mut functions = HashSet::new();
    if image.sections().is_empty() {
        let code = image.loads().iter().filter(|load| load.is_executable() && !load.is_writable());
        pieces.extend(code.filter_map(|load| Some((load.address, image.segment_bytes(load)?))));
        functions.extend(frames.fdes.iter().map(|fde| (fde.start.0, fde.length)));
    } else {
        let sections = image.sections().iter().filter(|section| is_of_stubs(section.name));
        pieces.extend(sections.filter_map(|section| Some((section.address, image.section_bytes(section)?))));
    }
    let mut stubs = HashMap::new();
    for (start, bytes) in image.no_more_than_all(pieces.into_iter(), |(_, bytes)| bytes.len()) {
        for at in ((start.wrapping_neg() & 7) as usize..bytes.len()).step_by(8) {
            let stub = start.wrapping_add(at as u64);
            let Some((slot, size)) = jump_through(&bytes[at..], stub) else { continue };
            if let Some(&import) = slots.get(&slot)
                && !functions.contains(&(stub, size))
            {
                stubs.insert(stub, import);
            }
        }
    }
    stubs
}
