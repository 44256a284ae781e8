//! How much memory a load goes over, judged by how often its sampled addresses repeat.
//!
//! A few hundred addresses drawn from a large area hardly ever share a line; drawn from a small one
//! they share many (the birthday problem). From m samples with d different lines, the number N of
//! lines follows by d = N · (1 - (1 - 1/N)^m). Lines that are used more often than others repeat
//! earlier, so N is what the samples *behave* like: the lines that carry most of the stall.

use units::{Estimate, Quantity, Unit};

/// Cache lines of every x86-64 processor, in bytes.
pub const LINE_BYTES: u64 = 64;
/// Fewer samples than this say nothing about an area.
const LEAST_SAMPLES: usize = 16;

/// The bytes that these addresses are spread over, with a 95% interval; without an upper end
/// (infinite) where no line repeats.
pub fn footprint_bytes(addresses: &[u64]) -> Option<Estimate> {
    if addresses.len() < LEAST_SAMPLES {
        return None;
    }
    let mut lines: Vec<u64> = addresses.iter().map(|address| address / LINE_BYTES).collect();
    lines.sort_unstable();
    lines.dedup();
    let (samples, different) = (addresses.len() as f64, lines.len() as f64);
    // Repetitions are rare events, about Poisson distributed: their number is known to within
    // about two standard deviations.
    let repeated = samples - different;
    let spread = 2.0 * (repeated + 1.0).sqrt();
    let bytes = |repeated: f64| lines_by(samples, samples - repeated) * LINE_BYTES as f64;
    // The lines that were seen are there in any case.
    let seen = different * LINE_BYTES as f64;
    let least = bytes((repeated + spread).min(samples - 1.0)).max(seen);
    let most = if repeated <= spread { f64::INFINITY } else { bytes(repeated - spread) };
    Some(Estimate { value: bytes(repeated), lo: least, hi: most })
}

/// As the record has it: without an upper end, the lower one is all that is known.
pub(crate) fn figure(footprint: Option<Estimate>) -> Quantity {
    match footprint {
        None => Quantity::unresolved("too few addresses are known"),
        Some(footprint) if footprint.hi.is_finite() => Quantity::modelled(footprint, Unit::Bytes),
        Some(footprint) => Quantity::modelled(Estimate::exact(footprint.lo.round()), Unit::Bytes),
    }
}

/// The number of lines of which this many samples show this many different ones.
fn lines_by(samples: f64, different: f64) -> f64 {
    if different >= samples {
        return f64::INFINITY;
    }
    let shown = |lines: f64| lines * -(samples * (-1.0 / lines).ln_1p()).exp_m1();
    let (mut low, mut high) = (different.max(1.0), different.max(1.0) * 2.0);
    if shown(low) >= different {
        return low;
    }
    while shown(high) < different && high < 1e18 {
        high *= 2.0;
    }
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if shown(middle) < different { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses drawn evenly from an area.
    fn drawn(samples: usize, bytes: u64) -> Vec<u64> {
        let mut random = 88_172_645_463_325_252_u64;
        (0..samples)
            .map(|_| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random % bytes
            })
            .collect()
    }

    #[test]
    fn areas_are_told_by_repetitions() {
        for bytes in [4 << 10, 32 << 10, 1 << 20, 4 << 20] {
            let found = footprint_bytes(&drawn(1024, bytes)).unwrap();
            assert!(found.lo <= bytes as f64 * 1.05 && bytes as f64 <= found.hi * 1.05, "{bytes}: {found:?}");
            assert!(found.lo > bytes as f64 / 3.0, "{bytes}: {found:?}");
        }
        let far = footprint_bytes(&drawn(1024, 4 << 30)).unwrap();
        assert!(far.hi.is_infinite() && far.lo > f64::from(8 << 20), "{far:?}");
    }

    #[test]
    fn one_line_is_one_line_and_few_samples_are_nothing() {
        let found = footprint_bytes(&[0x40; 100]).unwrap();
        assert_eq!((found.value, found.lo), (64.0, 64.0));
        assert_eq!(footprint_bytes(&[1, 2, 3]), None);
    }
}
