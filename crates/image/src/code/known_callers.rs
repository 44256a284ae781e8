//! Functions that nobody calls but by name from inside the module: not exported, their addresses in
//! no register, no relocation and no data. Their callers are all in view.

use crate::Module;
use crate::code::code_units;
use crate::elf::abi;
use crate::elf::bytes::{u16_at, u64_at};
use rayon::prelude::*;
use std::collections::HashSet;
use units::Svma;

/// For each unit, whether all that calls it is known.
pub fn of(module: &Module<'_>) -> Vec<bool> {
    let image = &module.image;
    // Without section headers nobody knows what is exported.
    if !image
        .sections()
        .iter()
        .any(|section| section.kind == abi::SHT_DYNSYM || section.kind == abi::SHT_SYMTAB)
    {
        return vec![false; module.units.len()];
    }
    let mut taken: HashSet<u64> = HashSet::new();
    for section in image.sections().iter().filter(|section| section.kind == abi::SHT_DYNSYM) {
        let bytes = image.section_bytes(section).unwrap_or(&[]);
        let defined = bytes.chunks_exact(24).filter(|entry| u16_at(entry, 6).is_some_and(|index| index != 0));
        taken.extend(defined.filter_map(|entry| u64_at(entry, 8)));
    }
    taken.extend(code_units::entry_points(image, &module.relocations).iter().map(|address| address.0));
    taken.extend(module.relocations.iter().map(|relocation| relocation.addend));
    taken.extend(module.decoded.iter().flat_map(|d| &d.code_references).map(|address| address.0));
    taken.extend(module.possible_entries().iter().map(|address| address.0));
    let is_start = |value: u64| module.units.binary_search_by_key(&Svma(value), |unit| unit.start).is_ok();
    taken.par_extend(image.words_of_data().map(|(_, value)| value.0).filter(|&value| is_start(value)));
    module.units.iter().map(|unit| !unit.is_part && !taken.contains(&unit.start.0)).collect()
}
