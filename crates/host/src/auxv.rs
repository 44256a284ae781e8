//! The auxiliary vector: what the kernel told this process at its start.

use crate::source::Source;
use records::host::Fact;

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

fn word(bytes: &[u8]) -> u64 {
    // Every 64-bit machine Gleaner runs on, or has a recording of, is little endian.
    bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b))
}
