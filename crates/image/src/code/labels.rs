//! Labels: places inside a unit whose addresses stand in the file's data, as a table of `&&label`
//! for a computed `goto` has them. Where a unit has indirect jumps through no known table, these
//! may lead there, and nothing else may lead to its code behind a label.
//!
//! A number in data may be anything. So only what stands in a row counts, and a unit's candidates
//! are labels only if code that begins at each of them fits to the rest of the unit's; else those
//! that are instructions anyway.

use crate::Image;
use crate::code::code_units::{Unit, unit_at};
use crate::code::descend::Decoded;
use crate::code::insn::index_at;
use crate::elf::relocations::Relocation;
use rayon::prelude::*;
use units::Svma;

/// Fewer addresses of one unit in a row may be there by chance. A switch whose table was not
/// believed has as many, and its cases are labels, too.
const LEAST_IN_A_ROW: usize = 4;

/// An address in the data: where it stands, and the unit and offset that it leads to.
struct Pointer {
    place: u64,
    unit: usize,
    at: u32,
}

/// A jump through a fixed place, as those of a table of imports, leads to no label.
fn may_have_labels(decoded: &Decoded) -> bool {
    let is_computed = |at: u32| {
        index_at(&decoded.insns, at).is_some_and(|index| decoded.insns[index].rip_displacement == 0)
    };
    !decoded.overlaps && decoded.open_jumps.iter().any(|jump| is_computed(jump.at))
}

/// Unit and offset of each candidate, ascending.
pub(crate) fn candidates(
    image: &Image<'_>,
    relocations: &[Relocation],
    units: &[Unit],
    decoded: &[Decoded],
) -> Vec<(usize, u32)> {
    let is_open: Vec<bool> = decoded.iter().map(may_have_labels).collect();
    if !is_open.contains(&true) {
        return Vec::new();
    }
    let pointer = |place: u64, address: u64| {
        let unit = unit_at(units, Svma(address)).filter(|&unit| is_open[unit])?;
        let at = u32::try_from(address - units[unit].start.0).ok().filter(|&at| at > 0)?;
        Some(Pointer { place, unit, at })
    };
    let relocated = relocations.iter();
    let mut pointers: Vec<Pointer> =
        relocated.filter_map(|relocation| pointer(relocation.place.0, relocation.addend)).collect();
    pointers.par_extend(image.words_of_data().filter_map(|(place, value)| pointer(place.0, value.0)));
    pointers.par_sort_unstable_by_key(|pointer| pointer.place);
    pointers.dedup_by_key(|pointer| pointer.place);
    let tables = pointers.chunk_by(|a, b| a.unit == b.unit && b.place - a.place == 8);
    let tables = tables.filter(|table| table.len() >= LEAST_IN_A_ROW).flatten();
    let mut found: Vec<(usize, u32)> = tables.map(|pointer| (pointer.unit, pointer.at)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether a unit that was decoded from its labels, too, hangs together as well as without. Jump
/// tables that are found only then are by what may be no code.
pub(crate) fn fit(without: &Decoded, with: &Decoded) -> bool {
    !with.overlaps
        && with.undecoded.len() <= without.undecoded.len()
        && with.tables.len() == without.tables.len()
}
