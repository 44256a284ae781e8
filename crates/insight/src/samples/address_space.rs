//! What is mapped where in a process, as far as events told.

use std::collections::BTreeMap;
use units::{Avma, FileOffset};

/// Which of the files and areas that processes map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MappedId(pub u32);

/// An instruction's place: in a file, or in memory that no file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub what: MappedId,
    pub offset: FileOffset,
}

/// One mapping of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub start: Avma,
    /// Behind its last byte.
    pub end: Avma,
    /// Where in the file its first byte is.
    pub offset: FileOffset,
    pub what: MappedId,
    /// What is written there is written to the file, and other processes see it.
    pub is_shared: bool,
}

impl Mapping {
    pub fn holds(&self, address: Avma) -> bool {
        self.start <= address && address < self.end
    }

    /// Where in its file an address is.
    pub fn offset_of(&self, address: Avma) -> Option<FileOffset> {
        self.offset.checked_add(address.checked_offset_from(self.start)?)
    }
}

/// The mappings of a process. What is mapped over another mapping replaces that part of it, as in
/// the kernel; that something was unmapped is not told, so a mapping stays until it is replaced.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    by_start: BTreeMap<u64, Mapping>,
}

impl AddressSpace {
    pub fn map(&mut self, new: Mapping) {
        if new.start >= new.end {
            return;
        }
        let before = self.by_start.range(..new.end.0).rev();
        let overlapped: Vec<Mapping> =
            before.map(|(_, mapping)| *mapping).take_while(|mapping| mapping.end > new.start).collect();
        for old in overlapped {
            self.by_start.remove(&old.start.0);
            if old.start < new.start {
                self.by_start.insert(old.start.0, Mapping { end: new.start, ..old });
            }
            if let Some(offset) = old.offset_of(new.end).filter(|_| new.end < old.end) {
                self.by_start.insert(new.end.0, Mapping { start: new.end, offset, ..old });
            }
        }
        self.by_start.insert(new.start.0, new);
    }

    /// The mapping that holds an address.
    pub fn at(&self, address: Avma) -> Option<&Mapping> {
        let (_, mapping) = self.by_start.range(..=address.0).next_back()?;
        mapping.holds(address).then_some(mapping)
    }

    /// What is at an address.
    pub fn place(&self, address: Avma) -> Option<Place> {
        let mapping = self.at(address)?;
        Some(Place { what: mapping.what, offset: mapping.offset_of(address)? })
    }

    /// All mappings, by ascending address.
    pub fn all(&self) -> impl Iterator<Item = &Mapping> {
        self.by_start.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, end: u64, offset: u64, what: u32) -> Mapping {
        let (offset, what) = (FileOffset(offset), MappedId(what));
        Mapping { start: Avma(start), end: Avma(end), offset, what, is_shared: false }
    }

    #[test]
    fn a_mapping_replaces_what_it_covers() {
        let mut space = AddressSpace::default();
        space.map(mapping(0x1000, 0x9000, 0, 0));
        space.map(mapping(0x3000, 0x5000, 0x100, 1));
        let all: Vec<Mapping> = space.all().copied().collect();
        assert_eq!(
            all,
            [
                mapping(0x1000, 0x3000, 0, 0),
                mapping(0x3000, 0x5000, 0x100, 1),
                mapping(0x5000, 0x9000, 0x4000, 0)
            ]
        );
        assert_eq!(space.at(Avma(0x4fff)).map(|m| m.what), Some(MappedId(1)));
        assert_eq!(space.at(Avma(0x5000)).and_then(|m| m.offset_of(Avma(0x5010))), Some(FileOffset(0x4010)));
        assert_eq!(space.at(Avma(0x9000)), None);
        assert_eq!(space.at(Avma(0)), None);
        space.map(mapping(0, 0x10000, 0, 2));
        assert_eq!(space.all().count(), 1);
        space.map(mapping(5, 5, 0, 3));
        assert_eq!(space.all().count(), 1, "an empty mapping changes nothing");
    }
}
