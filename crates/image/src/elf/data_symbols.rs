//! Names of variables: what lies at an address that is no code.

use crate::Image;
use crate::elf::abi;
use crate::elf::bytes::{u16_at, u32_at, u64_at};
use crate::elf::string;
use units::Svma;

/// A variable that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSymbol<'d> {
    pub address: Svma,
    pub size: u64,
    pub name: &'d [u8],
}

/// The variables of a module, by ascending address; of several names for one, the shortest.
#[derive(Clone, Debug, Default)]
pub struct DataSymbols<'d> {
    all: Vec<DataSymbol<'d>>,
}

impl<'d> DataSymbols<'d> {
    /// Those of the module itself and, if given, of its separate debug information.
    pub fn of(image: &Image<'d>, debug: Option<&Image<'d>>) -> Self {
        let mut all = Vec::new();
        for from in std::iter::once(image).chain(debug) {
            let tables = from
                .sections()
                .iter()
                .filter(|section| section.kind == abi::SHT_SYMTAB || section.kind == abi::SHT_DYNSYM)
                .filter_map(|section| Some((section, from.section_bytes(section)?)));
            for (section, bytes) in from.no_more_than_all(tables, |(_, bytes)| bytes.len()) {
                let strings = from.sections().get(section.link as usize);
                let strings = strings.and_then(|strings| from.section_bytes(strings)).unwrap_or(&[]);
                all.extend(bytes.chunks_exact(24).filter_map(|entry| variable(entry, strings)));
            }
        }
        let key = |s: &DataSymbol<'d>| (s.address, std::cmp::Reverse(s.size), s.name.len(), s.name);
        all.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        all.dedup_by_key(|symbol| (symbol.address, symbol.size));
        Self { all }
    }

    /// The variable that holds an address.
    pub fn at(&self, address: Svma) -> Option<&DataSymbol<'d>> {
        // Variables do not overlap, but for a whole and its parts: a few are looked at.
        const LOOKED_AT: usize = 8;
        let after = self.all.partition_point(|symbol| symbol.address <= address);
        let holds = |symbol: &&DataSymbol<'d>| address.0 - symbol.address.0 < symbol.size;
        self.all[..after].iter().rev().take(LOOKED_AT).find(holds)
    }
}

fn variable<'d>(entry: &[u8], strings: &'d [u8]) -> Option<DataSymbol<'d>> {
    const STT_OBJECT: u8 = 1;
    const STT_COMMON: u8 = 5;
    let is_variable = matches!(entry[4] & 0xf, STT_OBJECT | STT_COMMON);
    let (section, size) = (u16_at(entry, 6)?, u64_at(entry, 16)?);
    if !is_variable || section == 0 || size == 0 {
        return None;
    }
    let name = string(strings, u32_at(entry, 0)?);
    (!name.is_empty()).then_some(DataSymbol { address: Svma(u64_at(entry, 8)?), size, name })
}
