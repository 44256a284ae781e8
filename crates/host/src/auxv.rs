//! The auxiliary vector: what the kernel told this process at its start.

use crate::source::Source;
use records::host::Fact;

/// The value of one key, or 0 if the kernel left it out of a vector that is there, which means just
/// that for a bit set.
pub(crate) fn bits(source: &Source, key: u64) -> Fact<u64> {
    const AT_PAGESZ: u64 = 6; // never left out
    entry(source, key).or_else(|| entry(source, AT_PAGESZ).map(|_| 0))
}

/// The value of one key, by the numbers of `<linux/auxvec.h>`.
pub(crate) fn entry(source: &Source, key: u64) -> Fact<u64> {
    match source.bytes("proc/self/auxv") {
        Fact::Known(bytes) => bytes
            .chunks_exact(16)
            .map(|pair| (word(&pair[..8]), word(&pair[8..])))
            .find(|(k, _)| *k == key)
            .map_or_else(
                || Fact::unknown(format!("the auxiliary vector has no entry {key}")),
                |(_, v)| Fact::Known(v),
            ),
        Fact::Unknown { unknown } => Fact::Unknown { unknown },
    }
}

/// Page size and capabilities; the rest is this process's addresses.
pub(crate) fn without_addresses(vector: &[u8]) -> Vec<u8> {
    const KEPT: [u64; 4] = [0, 6, 16, 26];
    vector.chunks_exact(16).filter(|pair| KEPT.contains(&word(&pair[..8]))).flatten().copied().collect()
}

fn word(bytes: &[u8]) -> u64 {
    // Every 64-bit machine Gleaner runs on, or has a recording of, is little endian.
    bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b))
}
