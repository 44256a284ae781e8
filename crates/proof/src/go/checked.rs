//! What `crypto/internal/fips140/check` reads: 16 bytes that say so, a sum of 32, the place of all
//! this, and four pairs of addresses.

use super::original::is_marked;
use crate::container::elf::Elf;
use crate::container::read::Reader;

const SAYS_SO: &[u8] = b"\xff Go fipsinfo \xff\0";

/// All ranges that are read for a checksum, whatever they are.
pub(super) fn ranges(original: &Elf<'_>) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    if !is_marked(original) {
        return found;
    }
    for load in original.loads() {
        let bytes = original.segment_bytes(load).unwrap_or(&[]);
        // A program that searches for the same words has them in its code or data, too; those name
        // another place.
        for at in (0..bytes.len()).filter(|&at| bytes[at] == SAYS_SO[0] && bytes[at..].starts_with(SAYS_SO)) {
            let mut reader = Reader::new(bytes, at + SAYS_SO.len() + 32);
            if reader.fixed(8) != Some(load.address + at as u64) {
                continue;
            }
            found.extend((0..4).filter_map(|_| reader.fixed(8).zip(reader.fixed(8))));
        }
    }
    found
}
