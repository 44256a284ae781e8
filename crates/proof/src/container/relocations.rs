//! Rule R10: the relocations of the original, which a rewrite leaves as they are. So what is
//! relocated can have no copy, and no patch.

use crate::code::patches::PATCH;
use crate::container::elf::{self, Elf, Relocation};
use crate::container::mapping::Mapping;
use crate::container::read::number;
use crate::rule::{Findings, Rule};
use object::elf::{
    DT_JMPREL, DT_PLTRELSZ, DT_RELA, DT_RELASZ, DT_RELR, DT_RELRSZ, R_X86_64_GLOB_DAT, R_X86_64_IRELATIVE,
    R_X86_64_JUMP_SLOT, R_X86_64_NONE, R_X86_64_RELATIVE, R_X86_64_TLSDESC, RelocationType, SHF_ALLOC,
    SHT_RELA,
};
use units::Svma;

/// Where the loader writes, and which addresses it writes.
#[derive(Default)]
pub(crate) struct Relocations {
    /// Ascending.
    places: Vec<u64>,
    /// Place and address.
    pub(crate) addresses: Vec<(u64, u64)>,
    /// Slots of functions that are found at run time, ascending.
    slots: Vec<Slot>,
}

/// A word of the global offset table that will hold a function of another module, or one that a
/// resolver picks, or what a thread-local variable is found by.
#[derive(Clone, Copy)]
struct Slot {
    place: u64,
    kind: RelocationType,
    symbol: u32,
}

/// What a slot will hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    /// A function: the number of its symbol.
    Named(u32),
    Resolved,
    /// A descriptor of a thread-local variable, to be called by rules of its own.
    ThreadLocal,
}

impl Relocations {
    pub(crate) fn of(image: &Elf<'_>) -> Self {
        let mut found = Self::default();
        let table = |start, size| image.dynamic_table(start, size);
        let mut seen: Vec<u64> = Vec::new();
        for (start, bytes) in [table(DT_RELA, DT_RELASZ), table(DT_JMPREL, DT_PLTRELSZ)].into_iter().flatten()
        {
            seen.push(start);
            found.explicit(bytes);
        }
        // Static programs relocate themselves, without a dynamic section.
        for section in image.sections() {
            if section.kind == SHT_RELA
                && section.flags.contains(SHF_ALLOC)
                && !seen.contains(&section.address)
            {
                found.explicit(image.section_bytes(section).unwrap_or(&[]));
            }
        }
        if let Some((_, bytes)) = table(DT_RELR, DT_RELRSZ) {
            found.compact(image, bytes);
        }
        found.places.sort_unstable();
        found.slots.sort_unstable_by_key(|slot| slot.place);
        found
    }
    /// What the slot at this address will hold.
    pub(crate) fn slot(&self, place: u64) -> Option<Holds> {
        let found = self.slots.binary_search_by_key(&place, |slot| slot.place).ok()?;
        Some(match self.slots[found].kind {
            R_X86_64_IRELATIVE => Holds::Resolved,
            R_X86_64_TLSDESC => Holds::ThreadLocal,
            _ => Holds::Named(self.slots[found].symbol),
        })
    }
    fn explicit(&mut self, bytes: &[u8]) {
        for Relocation { place, kind, symbol, addend } in elf::relocations(bytes) {
            if kind == R_X86_64_NONE {
                continue;
            }
            self.places.push(place);
            if matches!(kind, R_X86_64_GLOB_DAT | R_X86_64_JUMP_SLOT | R_X86_64_IRELATIVE | R_X86_64_TLSDESC)
            {
                self.slots.push(Slot { place, kind, symbol });
            }
            if kind == R_X86_64_RELATIVE || kind == R_X86_64_IRELATIVE {
                self.addresses.push((place, addend));
            }
        }
    }
    /// The packed form: an address, then bitmaps of the 63 words behind.
    fn compact(&mut self, image: &Elf<'_>, bytes: &[u8]) {
        let mut next = 0u64;
        let mut add = |place: u64| {
            self.places.push(place);
            if let Some(to) = image.read_u64(Svma(place)) {
                self.addresses.push((place, to));
            }
        };
        for entry in bytes.chunks_exact(8).filter_map(|entry| number(entry, 0, 8)) {
            if entry & 1 == 0 {
                add(entry);
                next = entry.wrapping_add(8);
                continue;
            }
            for bit in (1..64).filter(|bit| entry >> bit & 1 == 1) {
                add(next.wrapping_add(8 * (bit - 1)));
            }
            next = next.wrapping_add(8 * 63);
        }
    }
    /// Whether the loader writes any of these bytes. A relocation is taken to write 8.
    pub(crate) fn touch(&self, start: u64, size: u64) -> bool {
        let first = self.places.partition_point(|&place| place.saturating_add(8) <= start);
        self.places.get(first).is_some_and(|&place| place < start.saturating_add(size))
    }

    /// R10 for the units and tables of a mapping.
    pub(crate) fn check(&self, mapping: &Mapping<'_>, added: (u64, u64), findings: &Findings) {
        if self.touch(added.0, added.1.saturating_sub(added.0)) {
            findings.at(Rule::Relocations, added.0, "a relocation writes into the new segments");
        }
        for unit in &mapping.units {
            if self.touch(unit.start, (unit.code.len() as u64).max(PATCH)) {
                findings.at(Rule::Relocations, unit.start, "a twin of code that the loader relocates");
            }
        }
        for table in &mapping.tables {
            if self.touch(table.original, table.size()) {
                findings.at(
                    Rule::Relocations,
                    table.original,
                    "a twin of a jump table that the loader relocates",
                );
            }
        }
    }
}
