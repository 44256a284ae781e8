//! Restartable sequences (`rseq`): code that the kernel knows by its place, and begins anew where
//! the thread was preempted or sent to another CPU in it. It does not know copies of it. So
//! functions with such code have no twin.

use image::Module;
use std::collections::HashSet;
use units::Svma;

/// Where compilers and libraries put the sequences' descriptors, by the kernel's own convention.
const TABLE: &[u8] = b"__rseq_cs";

/// The units that any word of a descriptor leads to: where a sequence begins, and where it goes
/// when it was interrupted.
pub(crate) fn units(module: &Module<'_>) -> HashSet<usize> {
    let mut found = HashSet::new();
    for section in module.image.sections().iter().filter(|section| section.name == TABLE) {
        let bytes = module.image.section_bytes(section).unwrap_or_default();
        let here = bytes.as_chunks().0.iter().map(|word| Svma(u64::from_le_bytes(*word)));
        let inside = |place: Svma| place.0.wrapping_sub(section.address) < section.size;
        let written = module.relocations.iter().filter(|r| inside(r.place)).map(|r| Svma(r.addend));
        found.extend(here.chain(written).filter_map(|address| module.unit_at(address)));
    }
    found
}
