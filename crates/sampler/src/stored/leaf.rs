//! Where the sampled instruction begins. Most profilers keep its address; some take a byte off, as
//! of a caller, which goes on behind its call. Instructions tell: what is sampled begins one.

use super::decoded::Decoded;
use image::Module;
use image::code::insn::index_at;
use insight::demangled;
use std::collections::{BTreeMap, BTreeSet};
use units::{FileOffset, Svma};

/// Go's runtime stops a thread by a signal, and has it call this function as if the program had
/// called it: a sample that comes just then lands on its first instruction, and its caller is the
/// instruction that was interrupted, with no byte taken off.
pub(super) const PREEMPTED: &str = "runtime.asyncPreempt";

/// Of one file: how far its sampled addresses are from where instructions begin, and whether its
/// functions are called what the samples call them.
#[derive(Debug, Default)]
pub(super) struct Leaves {
    /// By sampled place: where the instruction begins.
    shifted: BTreeMap<FileOffset, FileOffset>,
    /// Sampled places in which a thread stands that was interrupted elsewhere.
    stands_in: BTreeSet<FileOffset>,
    /// Samples whose function has the name that the samples give it, and others.
    pub same_names: u64,
    pub other_names: u64,
}

/// A place that was sampled.
pub(super) struct Sampled {
    pub samples: u64,
    /// What the samples call it: numbers of locations.
    pub location: u32,
}

impl Leaves {
    pub(super) fn of(
        data: &[u8],
        debug: Option<&[u8]>,
        sampled: &BTreeMap<FileOffset, Sampled>,
        decoded: &Decoded,
    ) -> Self {
        let mut found = Self::default();
        let Ok(image) = image::Image::parse(data) else { return found };
        let stated = sampled.keys().filter_map(|offset| image.address_of(*offset));
        let Ok(module) = Module::around(data, debug, stated) else { return found };
        let begins = |address: Svma| -> bool {
            let Some(unit) = module.unit_at(address) else { return false };
            let at = (address.0 - module.units[unit].start.0) as u32;
            index_at(&module.decoded[unit].insns, at).is_some()
        };
        let (mut exact, mut less_one) = (0, 0);
        let mut behind: Vec<(FileOffset, bool)> = Vec::new();
        for (&offset, counted) in sampled {
            let Some(address) = image.address_of(offset) else { continue };
            let (here, next) = (begins(address), begins(Svma(address.0.wrapping_add(1))));
            exact += if here { counted.samples } else { 0 };
            less_one += if next && !here { counted.samples } else { 0 };
            if next {
                behind.push((offset, here));
            }
            let symbol = module.unit_at(address).and_then(|unit| module.name(unit));
            if symbol.is_some_and(|symbol| symbol.starts_with(PREEMPTED.as_bytes())) {
                found.stands_in.insert(offset);
                continue;
            }
            found.compare(symbol, counted, decoded);
        }
        let is_less_one = less_one > exact;
        let shifted = behind.into_iter().filter(|(_, here)| is_less_one || !here);
        found.shifted = shifted.map(|(offset, _)| (offset, FileOffset(offset.0 + 1))).collect();
        found
    }

    /// Where the instruction at a sampled place begins.
    pub(super) fn begin(&self, offset: FileOffset) -> FileOffset {
        self.shifted.get(&offset).copied().unwrap_or(offset)
    }

    /// Whether a thread that was sampled here was interrupted at the instruction of its caller.
    pub(super) fn stands_in(&self, offset: FileOffset) -> bool {
        self.stands_in.contains(&offset)
    }

    /// Most samples call its functions otherwise: it is another file, or another build.
    pub(super) fn is_another(&self) -> bool {
        const LEAST: u64 = 10;
        self.other_names >= LEAST && self.other_names > self.same_names
    }

    fn compare(&mut self, symbol: Option<&[u8]>, counted: &Sampled, decoded: &Decoded) {
        let (from, to) = decoded.locations[counted.location as usize].names;
        let Some(names) = decoded.names.get(from as usize..to as usize).filter(|names| !names.is_empty())
        else {
            return;
        };
        let Some(symbol) = symbol else { return };
        let symbol = String::from_utf8_lossy(symbol);
        let own = [letters(&demangled(&symbol)), letters(&symbol)];
        let is_same = names.iter().any(|name| {
            let told = letters(&decoded.texts.get(name.function.into()));
            !told.is_empty() && own.iter().any(|own| own.contains(&told) || told.contains(own.as_str()))
        });
        *(if is_same { &mut self.same_names } else { &mut self.other_names }) += counted.samples;
    }
}

/// A name without what tools write in different ways.
fn letters(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored::decoded::Location;

    /// The instructions of a program's largest function, but for those of one byte.
    fn starts(data: &[u8]) -> Vec<FileOffset> {
        let module = Module::analyse(data, None).unwrap();
        let units = module.decoded.iter().enumerate();
        let (unit, decoded) = units.max_by_key(|(_, decoded)| decoded.insns.len()).unwrap();
        let start = module.units[unit].start.0;
        let long = decoded.insns.iter().filter(|insn| insn.len > 1);
        long.map(|insn| module.image.file_offset(Svma(start + u64::from(insn.at))).unwrap()).collect()
    }

    #[test]
    fn a_byte_that_was_taken_off_is_put_back() {
        let data = std::fs::read("/bin/true").unwrap();
        let starts = starts(&data);
        assert!(starts.len() > 30, "{}", starts.len());
        let decoded = Decoded { locations: vec![Location::default()], ..Decoded::default() };
        let of = |less: u64| {
            let sampled =
                starts.iter().map(|start| (FileOffset(start.0 - less), Sampled { samples: 3, location: 0 }));
            Leaves::of(&data, None, &sampled.collect(), &decoded)
        };
        let (exact, less_one) = (of(0), of(1));
        for start in &starts {
            assert_eq!(exact.begin(*start), *start);
            assert_eq!(less_one.begin(FileOffset(start.0 - 1)), *start);
        }
        assert!(!exact.is_another(), "nothing has a name");
    }
}
