//! Tears twins out of a rewritten file, so that a program that enters them dies: this shows that
//! they ran. Reads the file by `docs/twin-format.md` alone.

use image::Image;
use image::elf::symbols::Symbols;
use std::collections::BTreeMap;
use units::Svma;

/// `ud2`
const DEATH: [u8; 2] = [0x0f, 0x0b];

/// Where the twins are: original's address to twin's address and size.
fn twins(file: &Image<'_>) -> Option<BTreeMap<u64, (u64, u32)>> {
    let word = |bytes: &[u8], at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let (_, _, note) = file.notes().find(|(owner, kind, _)| *owner == b"Gleaner\0" && *kind == 1)?;
    let (offset, size) = (word(note, 8)? as usize, word(note, 16)? as usize);
    let map = file.data().get(offset..offset + size)?;
    let (count, units) = (word(map, 16)? as usize, word(map, 32)? as usize);
    (0..count)
        .map(|index| {
            let unit = units + 40 * index;
            Some((word(map, unit)?, (word(map, unit + 8)?, (word(map, unit + 24)? >> 32) as u32)))
        })
        .collect()
}

/// Addresses of the functions of this name: its own symbol, clones made by compilers
/// (`name.constprop.0`), C++ functions. Symbols with split-off parts (`name.cold`) are clones too.
pub(crate) fn named(symbols: &Symbols<'_>, name: &str) -> Vec<u64> {
    let mangled = format!("{}{name}", name.len());
    let is = |symbol: &str| {
        let base = symbol.split_once('.').map_or(symbol, |(base, _)| base);
        base == name
            || base.starts_with("_Z") && base[2..].trim_start_matches(['L', 'N']).starts_with(&mangled)
    };
    let found = symbols.all().iter().filter(|symbol| std::str::from_utf8(symbol.name).is_ok_and(is));
    found.map(|symbol| symbol.address.0).collect()
}

/// The rewritten file without the twins of these functions; nothing if none of them has one.
pub(crate) fn tear(rewritten: &[u8], functions: &[u64]) -> Option<Vec<u8>> {
    let image = Image::parse(rewritten).ok()?;
    let twins = twins(&image)?;
    let mut torn = rewritten.to_vec();
    let mut any = false;
    for (address, size) in functions.iter().filter_map(|function| twins.get(function)) {
        let at = image.file_offset(Svma(*address))?.0 as usize;
        for (byte, death) in torn.get_mut(at..at + *size as usize)?.iter_mut().zip(DEATH.iter().cycle()) {
            *byte = *death;
        }
        any = true;
    }
    any.then_some(torn)
}
