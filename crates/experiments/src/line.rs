//! The size of a cache line, for choosing what to measure.

use records::host::Host;

/// As the host claims it for this CPU; 64 where it claims nothing.
pub(crate) fn claimed(host: &Host, cpu: usize) -> u64 {
    let caches = host.data_cache_sizes_of(cpu as u32);
    caches.first().and_then(|c| c.line).map_or(64, |line| line.0).clamp(64, 256)
}
