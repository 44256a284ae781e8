//! How much memory a load goes over, judged by how often its sampled addresses repeat.
//!
//! A few hundred addresses drawn from a large area hardly ever share a line; drawn from a small one
//! they share many (the birthday problem). From m samples with d different lines, the number N of
//! lines follows by d = N · (1 - (1 - 1/N)^m). Lines that are used more often than others repeat
//! earlier, so N is what the samples *behave* like: the lines that carry most of the stall. A few hot
//! lines would hide the many behind them, so these are left out where most samples are of others.
//!
//! A stream leaves no line of its pages out, so its pages are counted in place of its lines where
//! too few lines repeat: there are sixty-four times fewer of them.

use std::collections::HashMap;
use units::{Estimate, Quantity, Unit};

/// Cache lines of every x86-64 processor, in bytes.
pub const LINE_BYTES: u64 = 64;
/// Fewer samples than this say nothing about an area.
const LEAST_SAMPLES: usize = 16;

/// A line with this part of the samples is hot, if it has this number of them.
const HOT_SHARE: f64 = 0.01;
const HOT_SAMPLES: usize = 8;
const PAGE_BYTES: u64 = 4096;

/// The bytes that these addresses are spread over, with a 95% interval; without an upper end
/// (infinite) where no line repeats. `step` is from one address to the next, if they are a stream.
pub fn footprint_bytes(addresses: &[u64], step: Option<i64>) -> Option<Estimate> {
    let by_lines = spread(&without_hot(addresses), LINE_BYTES, LINE_BYTES as f64)?;
    match step.map(i64::unsigned_abs) {
        Some(step) if by_lines.hi.is_infinite() && (1..PAGE_BYTES).contains(&step) => {
            let used = LINE_BYTES as f64 / step.max(LINE_BYTES) as f64;
            spread(addresses, PAGE_BYTES, used * PAGE_BYTES as f64)
        }
        _ => Some(by_lines),
    }
}

/// The addresses outside hot lines, if most are; else all of them.
fn without_hot(addresses: &[u64]) -> Vec<u64> {
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for address in addresses {
        *counts.entry(address / LINE_BYTES).or_default() += 1;
    }
    let hot = ((HOT_SHARE * addresses.len() as f64) as usize).max(HOT_SAMPLES);
    let others: Vec<u64> =
        addresses.iter().filter(|&address| counts[&(address / LINE_BYTES)] < hot).copied().collect();
    if 2 * others.len() > addresses.len() { others } else { addresses.to_vec() }
}

/// The bytes of so many blocks as these addresses are spread over, each of which counts `each`.
fn spread(addresses: &[u64], block_bytes: u64, each: f64) -> Option<Estimate> {
    if addresses.len() < LEAST_SAMPLES {
        return None;
    }
    let mut blocks: Vec<u64> = addresses.iter().map(|address| address / block_bytes).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let (samples, different) = (addresses.len() as f64, blocks.len() as f64);
    // Repetitions are rare events, about Poisson distributed: their number is known to within
    // about two standard deviations.
    let repeated = samples - different;
    let spread = 2.0 * (repeated + 1.0).sqrt();
    let bytes = |repeated: f64| blocks_by(samples, samples - repeated) * each;
    // The blocks that were seen are there in any case.
    let seen = different * each;
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

/// The number of blocks of which this many samples show this many different ones.
fn blocks_by(samples: f64, different: f64) -> f64 {
    if different >= samples {
        return f64::INFINITY;
    }
    let shown = |blocks: f64| blocks * -(samples * (-1.0 / blocks).ln_1p()).exp_m1();
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
            let found = footprint_bytes(&drawn(1024, bytes), None).unwrap();
            assert!(found.lo <= bytes as f64 * 1.05 && bytes as f64 <= found.hi * 1.05, "{bytes}: {found:?}");
            assert!(found.lo > bytes as f64 / 3.0, "{bytes}: {found:?}");
        }
        let far = footprint_bytes(&drawn(1024, 4 << 30), None).unwrap();
        assert!(far.hi.is_infinite() && far.lo > f64::from(8 << 20), "{far:?}");
    }

    #[test]
    fn one_line_is_one_line_and_few_samples_are_nothing() {
        let found = footprint_bytes(&[0x40; 100], None).unwrap();
        assert_eq!((found.value, found.lo), (64.0, 64.0));
        assert_eq!(footprint_bytes(&[1, 2, 3], None), None);
    }

    #[test]
    fn hot_lines_do_not_hide_the_many_behind_them() {
        let mut mixed = drawn(700, 1 << 30);
        mixed.extend((0..300).map(|at| (1 << 40) + at % 5 * 64));
        let far = footprint_bytes(&mixed, None).unwrap();
        assert!(far.lo > f64::from(4 << 20), "{far:?}");
        let near: Vec<u64> = mixed.iter().rev().take(600).copied().collect();
        assert!(footprint_bytes(&near, None).unwrap().hi.is_finite(), "half of it is hot");
    }

    #[test]
    fn a_streams_pages_tell_what_its_lines_do_not() {
        let addresses = drawn(1024, 128 << 20);
        let lines = footprint_bytes(&addresses, None).unwrap();
        assert!(lines.hi.is_infinite() && lines.lo < f64::from(32 << 20), "{lines:?}");
        for (step, bytes) in [(8, 128 << 20), (-64, 128 << 20), (256, 32 << 20)] {
            let pages = footprint_bytes(&addresses, Some(step)).unwrap();
            assert!(pages.lo < f64::from(bytes) && f64::from(bytes) < pages.hi, "{step}: {pages:?}");
            assert!(pages.lo > 0.4 * f64::from(bytes), "{step}: {pages:?}");
        }
        assert_eq!(footprint_bytes(&addresses, Some(1 << 20)), Some(lines), "pages are left out");
    }
}
