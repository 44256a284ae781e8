//! What a Go program compares with a checksum as it starts, if it is told to
//! (`GODEBUG=fips140=on`): the code and the constants of its cryptography, and what its variables
//! begin with. The linker says where that lies, in words that name their own place.
//!
//! `cmd/link/internal/ld/fips140.go` writes it, since 1.24; `crypto/internal/fips140/check` reads
//! it.

use crate::Image;
use crate::elf::bytes::u64_at;
use units::Svma;

const MAGIC: &[u8] = b"\xff Go fipsinfo \xff\x00";
/// Behind the magic number and the sum: its own address, then four ranges.
const OWN: usize = 48;
const RANGES: usize = 4;
const SIZE: usize = OWN + 8 + 16 * RANGES;

/// Where each range begins and ends; `None` if one of them is not all in the file.
pub(super) fn ranges(image: &Image<'_>) -> Option<Vec<(u64, u64)>> {
    let mut found = Vec::new();
    for load in image.loads() {
        let bytes = image.segment_bytes(load)?;
        let skew = (load.address.wrapping_neg() & 7) as usize;
        for at in (skew..bytes.len().saturating_sub(SIZE - 1)).step_by(8) {
            let is_it =
                bytes[at..].starts_with(MAGIC) && u64_at(bytes, at + OWN) == Some(load.address + at as u64);
            if !is_it {
                continue;
            }
            for range in bytes[at + OWN + 8..at + SIZE].chunks_exact(16) {
                let (from, to) = (u64_at(range, 0)?, u64_at(range, 8)?);
                image.bytes_at(Svma(from), usize::try_from(to.checked_sub(from)?).ok()?)?;
                found.push((from, to));
            }
        }
    }
    Some(found)
}
