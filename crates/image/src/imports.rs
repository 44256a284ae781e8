//! What the module calls in others: slots of the global offset table by name, and the PLT stubs that jump through them.

use crate::relocations::{Relocation, dynamic_symbol_name};
use crate::{Image, abi};
use std::collections::HashMap;
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
    pub fn of(image: &Image<'d>, relocations: &[Relocation]) -> Self {
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
        let stubs = stubs(image, &slots);
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
}

/// Finds `[endbr64] [bnd] jmp [rip + slot]` on every 8-byte boundary of the PLT sections. Without section headers the
/// stubs stay unknown, which only costs knowledge about calls.
fn stubs<'d>(image: &Image<'d>, slots: &HashMap<u64, Import<'d>>) -> HashMap<u64, Import<'d>> {
    let mut stubs = HashMap::new();
    for section in image.sections().iter().filter(|section| section.name.starts_with(b".plt")) {
        let Some(bytes) = image.section_bytes(section) else { continue };
        for at in (0..bytes.len()).step_by(8) {
            let mut jump = at;
            if bytes[jump..].starts_with(&[0xf3, 0x0f, 0x1e, 0xfa]) {
                jump += 4;
            }
            if bytes.get(jump) == Some(&0xf2) {
                jump += 1;
            }
            let Some([0xff, 0x25, rest @ ..]) = bytes.get(jump..jump + 6) else { continue };
            let displacement = rest.first_chunk().map_or(0, |chunk| i32::from_le_bytes(*chunk));
            let next = section.address.wrapping_add(jump as u64 + 6);
            if let Some(&import) = slots.get(&next.wrapping_add_signed(i64::from(displacement))) {
                stubs.insert(section.address + at as u64, import);
            }
        }
    }
    stubs
}
