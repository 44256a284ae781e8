//! `name.twin` for every twin whose original has a name.

use crate::layout::emit::Twins;
use image::Image;
use image::elf::abi;
use image::elf::bytes::u32_at;

/// A symbol table and its strings.
pub(crate) struct SymbolTable {
    pub symbols: Vec<u8>,
    pub strings: Vec<u8>,
    /// The index of the first symbol that is not local.
    pub first_global: u32,
    /// Index of the section header of the original's table, and of its strings.
    pub replaces: Option<(usize, usize)>,
}

const SYMBOL_SIZE: usize = 24;
const SUFFIX: &[u8] = b".twin\0";
const GLOBAL_FUNCTION: u8 = 0x12;

/// The module's own symbols and those of the twins, which belong to section `text`.
pub(crate) fn write(twins: &Twins<'_, '_>, text: u16) -> SymbolTable {
    let image = &twins.module.image;
    let (mut table, replaces) = original(image).unwrap_or_default();
    if table.symbols.is_empty() {
        table.symbols.resize(SYMBOL_SIZE, 0);
        table.strings.push(0);
        table.first_global = 1;
    }
    table.replaces = replaces;
    // Names are in the file, so there is no more of them than there is of it; unless they lie upon
    // each other.
    let most = table.strings.len() + SUFFIX.len() * twins.twins.len() + image.data().len();
    for (unit, twin) in twins.twins.iter().enumerate() {
        let (Some(twin), Some(name)) = (twin, twins.module.name(unit)) else { continue };
        if table.strings.len() > most {
            break;
        }
        let symbols = &mut table.symbols;
        symbols.extend((table.strings.len() as u32).to_le_bytes());
        symbols.extend([GLOBAL_FUNCTION, 0]);
        symbols.extend(text.to_le_bytes());
        symbols.extend(twin.address.to_le_bytes());
        symbols.extend(u64::from(twin.layout.size).to_le_bytes());
        table.strings.extend_from_slice(name);
        table.strings.extend_from_slice(SUFFIX);
    }
    table
}

impl Default for SymbolTable {
    fn default() -> Self {
        Self { symbols: Vec::new(), strings: Vec::new(), first_global: 1, replaces: None }
    }
}

type Replaces = Option<(usize, usize)>;

fn original(image: &Image<'_>) -> Option<(SymbolTable, Replaces)> {
    let (index, section) =
        image.sections().iter().enumerate().find(|(_, section)| section.kind == abi::SHT_SYMTAB)?;
    let strings_index = section.link as usize;
    let strings = image.section_bytes(image.sections().get(strings_index)?)?;
    let symbols = image.section_bytes(section)?;
    let whole = symbols.len() / SYMBOL_SIZE * SYMBOL_SIZE;
    u32_at(symbols, 0)?;
    let table = SymbolTable {
        symbols: symbols[..whole].to_vec(),
        strings: strings.to_vec(),
        first_global: section.info,
        replaces: None,
    };
    Some((table, Some((index, strings_index))))
}
