//! Names of functions: `.symtab`, `.dynsym`, and the symbol table of separate debug information.

use crate::Image;
use crate::elf::abi;
use crate::elf::bytes::{u16_at, u32_at, u64_at};
use crate::elf::string;
use units::Svma;

/// A symbol that names code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a symbol table's own marks, which do not exclude each other"
)]
pub struct Symbol<'d> {
    pub address: Svma,
    pub size: u64,
    pub name: &'d [u8],
    /// A function by its type; without that, only a label (as hand-written assembly has).
    pub is_function: bool,
    /// An indirect function: not what is called, but what is asked where that is.
    pub is_resolver: bool,
    /// In the dynamic symbol table, where other modules find it.
    pub is_exported: bool,
    /// Seen by other files that the module is made of: nobody else there has this name.
    pub is_global: bool,
}

/// All symbols that name code, by ascending address; typed before labels, long before short where
/// several share one.
#[derive(Clone, Debug, Default)]
pub struct Symbols<'d> {
    all: Vec<Symbol<'d>>,
}

impl<'d> Symbols<'d> {
    /// Those of the module itself and, if given, of its separate debug information.
    pub fn of(image: &Image<'d>, debug: Option<&Image<'d>>) -> Self {
        let mut all = Vec::new();
        collect(image, image, &mut all);
        if let Some(debug) = debug {
            collect(debug, image, &mut all);
        }
        all.sort_unstable_by(|a, b| {
            let key = |s: &Symbol<'d>| (s.address, !s.is_function, std::cmp::Reverse(s.size), s.name);
            key(a).cmp(&key(b))
        });
        all.dedup_by(|next, kept| {
            let same = (next.address, next.size, next.name, next.is_function)
                == (kept.address, kept.size, kept.name, kept.is_function);
            kept.is_exported |= same && next.is_exported;
            kept.is_resolver |= same && next.is_resolver;
            kept.is_global |= same && next.is_global;
            same
        });
        Self { all }
    }

    pub fn all(&self) -> &[Symbol<'d>] {
        &self.all
    }
    /// Those at exactly this address.
    pub fn at(&self, address: Svma) -> &[Symbol<'d>] {
        let first = self.all.partition_point(|symbol| symbol.address < address);
        let rest = &self.all[first..];
        &rest[..rest.partition_point(|symbol| symbol.address == address)]
    }
    /// The best name for this address.
    pub fn name(&self, address: Svma) -> Option<&'d [u8]> {
        self.at(address).first().map(|symbol| symbol.name)
    }
}

fn collect<'d>(from: &Image<'d>, code: &Image<'_>, all: &mut Vec<Symbol<'d>>) {
    let tables = from
        .sections()
        .iter()
        .filter(|section| section.kind == abi::SHT_SYMTAB || section.kind == abi::SHT_DYNSYM)
        .filter_map(|section| Some((section, from.section_bytes(section)?)));
    for (section, bytes) in from.no_more_than_all(tables, |(_, bytes)| bytes.len()) {
        let strings = from
            .sections()
            .get(section.link as usize)
            .and_then(|strings| from.section_bytes(strings))
            .unwrap_or(&[]);
        let is_exported = section.kind == abi::SHT_DYNSYM;
        let symbols = bytes.chunks_exact(24).filter_map(|entry| symbol(entry, strings, code));
        all.extend(symbols.map(|symbol| Symbol { is_exported, ..symbol }));
    }
}

fn symbol<'d>(entry: &[u8], strings: &'d [u8], code: &Image<'_>) -> Option<Symbol<'d>> {
    let kind = entry[4] & 0xf;
    let is_function = kind == abi::STT_FUNC || kind == abi::STT_GNU_IFUNC;
    let section = u16_at(entry, 6)?;
    let address = Svma(u64_at(entry, 8)?);
    let named = is_function || kind == abi::STT_NOTYPE;
    if !named || section == 0 || !code.is_code(address) {
        return None;
    }
    let name = string(strings, u32_at(entry, 0)?);
    let is_resolver = kind == abi::STT_GNU_IFUNC;
    (!name.is_empty()).then_some(Symbol {
        address,
        size: u64_at(entry, 16)?,
        name,
        is_function,
        is_resolver,
        is_exported: false,
        is_global: entry[4] >> 4 != 0,
    })
}
