//! What a file of samples holds, whatever its format: samples by their stacks, and what it says of
//! the places that they name.

use super::StoredError;
use super::sample_types::Chosen;
use super::tree::{Budget, Map, Tree};
use std::collections::HashMap;

/// A file, read.
#[derive(Debug, Default)]
pub(super) struct Decoded {
    pub modules: Vec<Module>,
    /// By the numbers that the tree has.
    pub locations: Vec<Location>,
    /// What locations are called, by their ranges.
    pub names: Vec<Name>,
    pub texts: Texts,
    pub tree: Tree,
    pub chosen: Chosen,
    /// How long it was sampled.
    pub duration_ns: Option<u64>,
    /// The program, if the file tells.
    pub program: Option<String>,
    /// Lines or samples that are not understood.
    pub not_understood: u64,
    /// Of folded stacks nothing says what was sampled.
    pub is_of_unknown_kind: bool,
}

/// A file that was mapped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Module {
    pub path: String,
    /// As the file spells it: of the linker in hexadecimal, or Go's.
    pub build_id: Option<String>,
    pub start: u64,
    pub limit: u64,
    pub offset: u64,
}

impl Module {
    pub(super) fn is_kernel(&self) -> bool {
        self.path.starts_with("[kernel") || self.path.starts_with("[guest.kernel") || self.path == "vmlinux"
    }

    /// Memory of the process that no file has, as the kernel and profilers name it.
    pub(super) fn is_file(&self) -> bool {
        !self.path.is_empty() && !self.path.starts_with('[') && !self.path.starts_with("//")
    }
}

/// Where a frame is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Location {
    /// Number of its module.
    pub module: Option<u32>,
    /// None is told where it is zero.
    pub address: u64,
    /// Its names in the list of all: the innermost inlined function first.
    pub names: (u32, u32),
    pub in_kernel: bool,
}

/// A function and its source file: numbers of texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Name {
    pub function: u32,
    pub file: u32,
}

/// Addresses of the kernel are in the upper half.
pub(super) fn is_of_kernel(address: u64) -> bool {
    address >> 63 == 1
}

/// The texts of a file, by number.
#[derive(Debug, Default)]
pub(super) struct Texts {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

/// No name is longer; what is behind that is left out.
const LONGEST_TEXT: usize = 16 << 10;

impl Texts {
    pub(super) fn push(&mut self, text: &[u8], budget: &mut Budget) -> Result<u32, StoredError> {
        let text = &text[..text.len().min(LONGEST_TEXT)];
        budget.take(text.len() + size_of::<usize>())?;
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
        Ok(self.ends.len() as u32 - 1)
    }

    /// Empty where there is none of this number.
    pub(super) fn get(&self, number: u64) -> std::borrow::Cow<'_, str> {
        let Ok(number) = usize::try_from(number) else { return "".into() };
        let Some(&end) = self.ends.get(number) else { return "".into() };
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        String::from_utf8_lossy(&self.bytes[start..end])
    }
}

/// Texts that are numbered when they are first met.
#[derive(Debug, Default)]
pub(super) struct Interned {
    pub texts: Texts,
    numbers: HashMap<Box<[u8]>, u32>,
}

impl Interned {
    pub(super) fn number(&mut self, text: &[u8], budget: &mut Budget) -> Result<u32, StoredError> {
        if let Some(&number) = self.numbers.get(text) {
            return Ok(number);
        }
        budget.take(text.len() + 48)?;
        let number = self.texts.push(text, budget)?;
        self.numbers.insert(text.into(), number);
        Ok(number)
    }
}

/// Things by the ids that a file gives them: numbered when they are first met, named or used.
#[derive(Debug)]
pub(super) struct ById<T> {
    /// Of small ids, as nearly all are: one more than the number.
    small: Vec<u32>,
    large: Map<u64, u32>,
    pub all: Vec<T>,
}

impl<T> Default for ById<T> {
    fn default() -> Self {
        Self { small: Vec::new(), large: Map::default(), all: Vec::new() }
    }
}

/// Smaller ids are looked up in a list, if they are about as many as that list is long.
const SMALL: u64 = 1 << 24;

impl<T> ById<T> {
    fn is_small(&self, id: u64) -> bool {
        id < SMALL && id < 4 * self.all.len() as u64 + 1024
    }
}

impl<T: Default> ById<T> {
    pub(super) fn number(&mut self, id: u64, budget: &mut Budget) -> Result<u32, StoredError> {
        if let Some(number) = self.known(id) {
            return Ok(number);
        }
        budget.take(size_of::<T>() + 16)?;
        let number = self.all.len() as u32;
        self.all.push(T::default());
        if self.is_small(id) {
            if self.small.len() <= id as usize {
                self.small.resize(id as usize + 1, 0);
            }
            self.small[id as usize] = number + 1;
        } else {
            self.large.insert(id, number);
        }
        Ok(number)
    }

    pub(super) fn known(&self, id: u64) -> Option<u32> {
        let small = usize::try_from(id).ok().and_then(|id| self.small.get(id).copied());
        // It may have been too large for the list when it was first met.
        small.and_then(|number| number.checked_sub(1)).or_else(|| self.large.get(&id).copied())
    }

    pub(super) fn get(&self, id: u64) -> Option<&T> {
        self.known(id).map(|number| &self.all[number as usize])
    }

    pub(super) fn entry(&mut self, id: u64, budget: &mut Budget) -> Result<&mut T, StoredError> {
        let number = self.number(id, budget)?;
        Ok(&mut self.all[number as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_any_size_are_numbered_as_they_come() {
        let (mut things, mut budget) = (ById::<u8>::default(), Budget::of(1 << 20));
        let ids = [7, 0, u64::MAX, SMALL, SMALL - 1, 7];
        let numbers: Vec<u32> = ids.iter().map(|&id| things.number(id, &mut budget).unwrap()).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 0]);
        assert_eq!((things.known(SMALL), things.known(8), things.known(1 << 40)), (Some(3), None, None));
        assert!(ById::<u8>::default().number(1, &mut Budget::of(4)).is_err());
    }

    #[test]
    fn texts_are_found_by_their_numbers() {
        let (mut interned, mut budget) = (Interned::default(), Budget::of(1 << 20));
        let mut number = |text: &[u8]| interned.number(text, &mut budget).unwrap();
        assert_eq!([number(b""), number(b"main"), number(b""), number(b"\xff")], [0, 1, 0, 2]);
        let texts = &interned.texts;
        assert_eq!(
            (&*texts.get(1), &*texts.get(0), &*texts.get(2), &*texts.get(9)),
            ("main", "", "\u{fffd}", "")
        );
        assert_eq!((&*texts.get(u64::MAX), texts.ends.len()), ("", 3));
    }
}
