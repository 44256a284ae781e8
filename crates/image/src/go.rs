//! Programs of Go: what they are known by, and where their functions are. They have no unwind
//! table, and stripped ones no symbols; but their linker tells their runtime where each function
//! begins, in memory that stripping leaves alone.

use crate::Image;
use crate::elf::Segment;
use crate::elf::bytes::{u32_at, u64_at};
use units::Svma;

/// Whether a module is a Go program, or has Go code in it, by whatever says so.
pub fn is_go(image: &Image<'_>) -> bool {
    let sections =
        [".gopclntab", ".data.rel.ro.gopclntab", ".note.go.buildid", ".go.buildinfo", ".go.module"];
    sections.iter().any(|name| image.section(name).is_some())
        || image.notes().any(|(owner, kind, _)| owner == b"Go\0\0" && kind == 4)
}

/// Offsets in `moduledata` (`runtime/symtab.go`): the same from version 1.19 to 1.26.
const NAMES: usize = 8;
const INDEX: usize = 128;
const MIN_PC: usize = 160;
const MAX_PC: usize = 168;
const TEXT: usize = 176;
const SIZE: usize = 184;
/// What the head of all tables begins with: of versions up to 1.19, and later ones.
const MAGIC: [u32; 2] = [0xffff_fff0, 0xffff_fff1];

/// Start and size of each function, by ascending start; none of what is no Go program, is
/// relocated, or has tables of an unknown form.
pub(crate) fn functions(image: &Image<'_>) -> Vec<(Svma, u32)> {
    if !is_go(image) || image.is_position_independent() {
        return Vec::new();
    }
    let mut found = modules(image);
    match (found.next(), found.next()) {
        (Some(module), None) => listed(image, module).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// What the table of functions says, if it says the same as the rest of the `moduledata`.
fn listed(image: &Image<'_>, module: Svma) -> Option<Vec<(Svma, u32)>> {
    let module = image.bytes_at(module, SIZE)?;
    let text = u64_at(module, TEXT)?;
    let count = usize::try_from(u64_at(module, INDEX + 8)?).ok()?.checked_sub(1)?;
    // Of the last entry, half may be left out.
    let index = image.bytes_at(Svma(u64_at(module, INDEX)?), count.checked_mul(8)?.checked_add(4)?)?;
    let starts: Vec<u64> =
        index.chunks(8).map(|entry| text.checked_add(u32_at(entry, 0)?.into())).collect::<Option<_>>()?;
    let is_sound = starts.is_sorted()
        && starts.first().copied() == u64_at(module, MIN_PC)
        && starts.last().copied() == u64_at(module, MAX_PC);
    // Marks that the linker leaves in the code have no size.
    let ranges = starts.windows(2).filter(|pair| pair[0] < pair[1]);
    is_sound.then(|| ranges.map(|pair| (Svma(pair[0]), (pair[1] - pair[0]) as u32)).collect())
}

/// Every place in written memory that may be a `moduledata`: what it points to begins as the head
/// of the tables does, and says itself where the names lie.
fn modules<'a>(image: &'a Image<'_>) -> impl Iterator<Item = Svma> + 'a {
    let words = |load: &'a Segment| {
        let bytes = image.segment_bytes(load).unwrap_or(&[]);
        let skew = (load.address.wrapping_neg() & 7) as usize;
        let words = bytes.get(skew..).unwrap_or(&[]).chunks_exact(8).enumerate();
        words.map(move |(nth, word)| (load.address + (skew + 8 * nth) as u64, word))
    };
    let is_head = |word: &[u8]| {
        u32_at(word, 0).is_some_and(|magic| MAGIC.contains(&magic)) && word[4..8] == [0, 0, 1, 8]
    };
    let constant = image.loads().iter().filter(|load| !load.is_writable());
    let heads: Vec<u64> =
        constant.flat_map(words).filter(|(_, word)| is_head(word)).map(|(address, _)| address).collect();
    let written = image.loads().iter().filter(|load| load.is_writable());
    written.flat_map(words).filter_map(move |(address, word)| {
        let head = u64_at(word, 0).filter(|head| heads.contains(head))?;
        let names = image.read_u64(Svma(address + NAMES as u64))?;
        (names == head.wrapping_add(image.read_u64(Svma(head + 32))?)).then_some(Svma(address))
    })
}
