//! Dynamic relocations: which names the module imports where, and which code addresses stand in its
//! data.

use crate::Image;
use crate::elf::abi;
use crate::elf::bytes::{u32_at, u64_at};
use crate::elf::string;
use units::Svma;

/// One entry of a RELA table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    pub place: Svma,
    pub kind: u32,
    pub symbol: u32,
    pub addend: u64,
}

/// All dynamic relocations with addends (RELR ones keep their value in place, where a scan of the
/// data finds it).
pub fn dynamic_relocations(image: &Image<'_>) -> Vec<Relocation> {
    let mut tables = vec![];
    let value = |tag| image.dynamic_value(tag);
    if let (Some(at), Some(size)) = (value(abi::DT_RELA), value(abi::DT_RELASZ)) {
        tables.push((at, size));
    }
    if let (Some(at), Some(size)) = (value(abi::DT_JMPREL), value(abi::DT_PLTRELSZ)) {
        tables.push((at, size));
    }
    if tables.is_empty() {
        // A static program has no dynamic section, but resolves its IFUNCs by a table all the same.
        let rela =
            image.sections().iter().filter(|s| s.kind == abi::SHT_RELA && s.flags & abi::SHF_ALLOC != 0);
        tables.extend(rela.map(|section| (section.address, section.size)));
    }
    let mut all = Vec::new();
    for (at, size) in tables {
        let Some(bytes) = image.bytes_from(Svma(at)) else { continue };
        let bytes = &bytes[..bytes.len().min(size as usize)];
        all.extend(bytes.chunks_exact(24).filter_map(|entry| {
            Some(Relocation {
                place: Svma(u64_at(entry, 0)?),
                kind: u32_at(entry, 8)?,
                symbol: u32_at(entry, 12)?,
                addend: u64_at(entry, 16)?,
            })
        }));
    }
    all
}

/// The name of a dynamic symbol.
pub fn dynamic_symbol_name<'d>(image: &Image<'d>, index: u32) -> Option<&'d [u8]> {
    const DT_STRTAB: u64 = 5;
    const DT_SYMTAB: u64 = 6;
    let symbols = image.dynamic_value(DT_SYMTAB)?;
    let strings = image.bytes_from(Svma(image.dynamic_value(DT_STRTAB)?))?;
    let entry = image.bytes_at(Svma(symbols.checked_add(u64::from(index) * 24)?), 24)?;
    Some(string(strings, u32_at(entry, 0)?)).filter(|name| !name.is_empty())
}
