//! How much memory a load goes over, judged by how often its sampled addresses repeat.
//!
//! A few hundred addresses drawn from a large area hardly ever share a line; drawn from a small one
//! they share many (the birthday problem). From m samples with d different lines, the number N of
//! lines follows by d = N · (1 - (1 - 1/N)^m). Lines that are used more often than others repeat
//! earlier, so N is what the samples *behave* like: the lines that carry most of the stall. A few
//! hot lines would hide the many behind them, so these are left out where most samples are of
//! others.
//!
//! Where no line repeats, what they lie in does: pages, and larger pieces of memory, of which there
//! are fewer. Lines are no more than all of these hold. Nor are they much fewer, if the samples lie
//! in pages and in the lines of pages as those do that are drawn from all of a piece.
//!
//! ```text
//!   900 samples of 600 MiB     pieces that differ     by that
//!   lines of 64 B                             900     12 MiB at least
//!   pages of 4 KiB                            897     240 MiB to more
//!   pieces of 64 KiB                          860     480 to 800 MiB
//! ```
//!
//! A stream goes from one end of an area to the other, so what its samples cover is what it goes
//! over, but for what its steps leave out.

use std::collections::HashMap;
use units::{Estimate, Quantity, Unit, middle_sorted};

/// Cache lines of every x86-64 processor, in bytes.
pub(crate) const LINE_BYTES: u64 = 64;
/// Fewer samples than this say nothing about an area.
const LEAST_SAMPLES: usize = 16;

/// A line with this many samples is hot, if there are more such lines than there are by chance.
const HOT_SAMPLES: usize = 4;
/// A stream's samples lie about evenly: a gap that is this many times the usual one is a gap
/// between two areas.
const GAP: u64 = 64;

/// The bytes that these addresses are spread over, with a 95% interval; without an upper end
/// (infinite) where no line repeats. `step` is from one address to the next, if they are a stream.
pub(crate) fn footprint_bytes(addresses: &[u64], step: Option<i64>) -> Option<Estimate> {
    match step.map(i64::unsigned_abs) {
        Some(step) if step > 0 => of_stream(addresses, step),
        _ => {
            let addresses = without_hot(addresses);
            Some(by_pieces(spread(&addresses)?, &addresses))
        }
    }
}

const PAGE: u64 = 4096;
/// The sizes of pieces that are looked at.
const PIECES: [u64; 4] = [PAGE, 64 << 10, 1 << 20, 16 << 20];
/// Pieces are known well enough if their number is known to within this ratio, and is not so small
/// that their ends make much of it.
const SURE: f64 = 1.5;
const LEAST_PIECES: f64 = 8.0;

/// How many pieces these addresses lie in, if they are drawn from all of them.
fn pieces(addresses: &[u64], piece: u64) -> Option<Estimate> {
    if addresses.len() < LEAST_SAMPLES {
        return None;
    }
    let mut seen: Vec<u64> = addresses.iter().map(|address| address / piece).collect();
    seen.sort_unstable();
    seen.dedup();
    let (samples, different) = (addresses.len() as f64, seen.len() as f64);
    let value = lines_by(samples, different);
    let each = samples / value;
    // How far the number of different ones is from what is usual: of many pieces as that of rare
    // events, of few ones less, since nearly all of them are seen.
    let part = (-each).exp();
    let variance = if value.is_finite() { value * part * (1.0 - (1.0 + each) * part) } else { 0.0 };
    let off = 2.0 * variance.max(0.25).sqrt() + 1.0;
    let lo = lines_by(samples, (different - off).max(1.0)).max(different);
    let hi = if samples - different <= off { f64::INFINITY } else { lines_by(samples, different + off) };
    Some(Estimate { value: value.max(different), lo, hi })
}

/// What these lines are spread over, by the pieces of memory, too, that they lie in.
fn by_pieces(lines: Estimate, addresses: &[u64]) -> Estimate {
    let bytes = |piece: u64| pieces(addresses, piece).map(|count| count.scaled(piece as f64));
    let is_known = |count: &Estimate| count.hi <= SURE * count.lo && count.value >= LEAST_PIECES;
    let known = PIECES.into_iter().find(|&piece| pieces(addresses, piece).as_ref().is_some_and(is_known));
    let Some((piece, all)) = known.and_then(|piece| Some((piece, bytes(piece)?))) else { return lines };
    let hi = all.hi.max(lines.lo).min(lines.hi);
    // Some pages of a piece may not be used, or some lines of a page.
    let pages = if piece == PAGE { Some(all) } else { bytes(PAGE) };
    let is_full = pages.is_some_and(|pages| 2.0 * pages.value >= all.lo)
        && lines.hi >= all.lo
        && has_lines_of_all_kinds(addresses);
    if !is_full {
        return Estimate { value: lines.value.min(hi).max(lines.lo), hi, ..lines };
    }
    let lo = all.lo.max(lines.lo).min(hi);
    Estimate { value: all.value.clamp(lo, hi), lo, hi }
}

/// Whether samples lie in as many lines of a page as those do that are drawn at random.
fn has_lines_of_all_kinds(addresses: &[u64]) -> bool {
    const LINES: usize = (PAGE / LINE_BYTES) as usize;
    let mut is_there = [false; LINES];
    for address in addresses {
        is_there[(address % PAGE / LINE_BYTES) as usize] = true;
    }
    let there = is_there.iter().filter(|is_there| **is_there).count() as f64;
    let by_chance = LINES as f64 * -(addresses.len() as f64 * (-1.0 / LINES as f64).ln_1p()).exp_m1();
    there >= 0.75 * by_chance
}

/// What a stream goes over, from end to end of each area.
fn of_stream(addresses: &[u64], step: u64) -> Option<Estimate> {
    if addresses.len() < LEAST_SAMPLES {
        return None;
    }
    let mut ordered = addresses.to_vec();
    ordered.sort_unstable();
    let mut gaps: Vec<u64> = ordered.windows(2).map(|pair| pair[1] - pair[0]).collect();
    gaps.sort_unstable();
    let whole = step.max(LINE_BYTES);
    let most = GAP.saturating_mul(middle_sorted(&gaps)?.max(whole));
    let line_of = |address: u64| address / LINE_BYTES * LINE_BYTES;
    let (mut first, mut covered) = (line_of(ordered[0]), whole);
    let mut within = Vec::new();
    for pair in ordered.windows(2) {
        let gap = pair[1] - pair[0];
        if gap > most {
            (first, covered) = (line_of(pair[1]), covered.saturating_add(whole));
        } else {
            covered = covered.saturating_add(gap);
            within.push((pair[1] - first) % whole / LINE_BYTES);
        }
    }
    let lines = lines_of_step(&within, whole.div_ceil(LINE_BYTES));
    let bytes = |covered: f64, lines: f64| covered * (lines * LINE_BYTES as f64 / whole as f64).min(1.0);
    // The ends of areas are not sampled; of gaps that are usual some may be between areas.
    let off = 3.0 / (addresses.len() as f64).sqrt();
    let covered = covered as f64;
    let (lo, hi) = (covered * (1.0 - off).max(0.25), covered * (1.0 + off));
    Some(Estimate::new(bytes(covered, lines.value), bytes(lo, lines.lo), bytes(hi, lines.hi)))
}

/// How many of the lines of each step are read, by where in their steps addresses lie, counted from
/// the first of their area: one where a loop goes over its array once, several where several loads
/// do or where it begins anew at other offsets, as over the columns of a matrix. Of two addresses
/// drawn from N lines that are read alike one pair in N is in the same line; a line that is read
/// rarely hardly counts.
fn lines_of_step(within: &[u64], most: u64) -> Estimate {
    let mut counts: HashMap<u64, f64> = HashMap::new();
    for line in within {
        *counts.entry(*line).or_default() += 1.0;
    }
    let pairs_of = |count: f64| count * (count - 1.0) / 2.0;
    let (pairs, same) = (pairs_of(within.len() as f64), counts.into_values().map(pairs_of).sum::<f64>());
    // Rare events, about Poisson distributed, as repeated lines are.
    let off = 2.0 * (same + 1.0).sqrt();
    let lines = |same: f64| if same > 0.0 { (pairs / same).clamp(1.0, most as f64) } else { most as f64 };
    Estimate { value: lines(same), lo: lines(same + off), hi: lines(same - off) }
}

/// The addresses outside hot lines, if these are more than chance makes them, and most are outside;
/// else all of them.
fn without_hot(addresses: &[u64]) -> Vec<u64> {
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for address in addresses {
        *counts.entry(address / LINE_BYTES).or_default() += 1;
    }
    let is_hot = |address: &&u64| counts[&(**address / LINE_BYTES)] >= HOT_SAMPLES;
    let others: Vec<u64> = addresses.iter().filter(|address| !is_hot(address)).copied().collect();
    let hot = counts.values().filter(|&&count| count >= HOT_SAMPLES).count() as f64;
    let Some(lines) = spread(&others).map(|bytes| bytes.value / LINE_BYTES as f64) else {
        return addresses.to_vec();
    };
    // By Poisson's law, of that many lines with as many samples.
    let each = others.len() as f64 / lines;
    let by_chance = if lines.is_finite() { lines * each.powi(4) / 24.0 } else { 0.0 };
    let is_most = 2 * others.len() > addresses.len();
    if is_most && hot > 2.0 + 3.0 * by_chance { others } else { addresses.to_vec() }
}

/// The bytes of the lines that these addresses are spread over.
fn spread(addresses: &[u64]) -> Option<Estimate> {
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
    use units::random::Xorshift;

    /// Addresses drawn evenly from an area.
    fn drawn(samples: usize, bytes: u64) -> Vec<u64> {
        let mut random = Xorshift::new(88_172_645_463_325_252);
        (0..samples).map(|_| random.below(bytes)).collect()
    }

    #[test]
    fn areas_are_told_by_repetitions() {
        for bytes in [4 << 10, 32 << 10, 1 << 20, 4 << 20] {
            let found = footprint_bytes(&drawn(1024, bytes), None).unwrap();
            assert!(found.lo <= bytes as f64 * 1.05 && bytes as f64 <= found.hi * 1.05, "{bytes}: {found:?}");
            assert!(found.lo > bytes as f64 / 3.0, "{bytes}: {found:?}");
        }
        // No line repeats, but pages do, and larger pieces.
        for mib in [40_u64, 600, 4096] {
            let far = footprint_bytes(&drawn(1024, mib << 20), None).unwrap();
            let [value, lo, hi] = [far.value, far.lo, far.hi].map(|it| it / f64::from(1 << 20));
            assert!(lo <= mib as f64 * 1.1 && mib as f64 <= hi * 1.1, "{mib} MiB: {far:?}");
            assert!(lo > mib as f64 / 2.0 && hi < mib as f64 * 2.0 && lo <= value && value <= hi, "{far:?}");
        }
    }

    #[test]
    fn pages_of_which_few_lines_are_used_do_not_count_whole() {
        let drawn = drawn(1024, 600 << 20);
        let one_each: Vec<u64> = drawn.iter().map(|address| address / PAGE * PAGE + 640).collect();
        let found = footprint_bytes(&one_each, None).unwrap();
        assert!(found.lo < f64::from(20 << 20) && found.hi > f64::from(300 << 20), "{found:?}");
        // One page in sixty-four.
        let few: Vec<u64> = drawn.iter().map(|address| ((address / PAGE) << 18) | (address % PAGE)).collect();
        let found = footprint_bytes(&few, None).unwrap();
        assert!(found.lo < f64::from(700 << 20), "{found:?}");
    }

    #[test]
    fn one_line_is_one_line_and_few_samples_are_nothing() {
        let found = footprint_bytes(&[0x40; 100], None).unwrap();
        assert_eq!((found.value, found.lo), (64.0, 64.0));
        assert_eq!(footprint_bytes(&[1, 2, 3], None), None);
    }

    #[test]
    fn hot_lines_do_not_hide_the_many_behind_them() {
        for hot_lines in [5, 60] {
            let mut mixed = drawn(700, 1 << 30);
            mixed.extend((0..300).map(|at| (1 << 40) + at % hot_lines * 64));
            let far = footprint_bytes(&mixed, None).unwrap();
            assert!(far.lo > f64::from(4 << 20), "{hot_lines}: {far:?}");
            let near: Vec<u64> = mixed.iter().rev().take(500).copied().collect();
            assert!(footprint_bytes(&near, None).unwrap().lo < f64::from(1 << 20), "most of it is hot");
        }
    }

    #[test]
    fn a_stream_goes_over_what_its_samples_cover() {
        let mut addresses = drawn(1024, 128 << 20);
        let by_four: Vec<u64> = addresses.iter().map(|address| (address & !0xff) | 0x18).collect();
        let found = footprint_bytes(&by_four, Some(256)).unwrap();
        assert!(found.lo < f64::from(32 << 20) && f64::from(32 << 20) < found.hi, "{found:?}");
        // Four loads together read all lines of each step.
        for (step, bytes) in [(8, 128 << 20), (-64, 128 << 20), (256, 128 << 20)] {
            let found = footprint_bytes(&addresses, Some(step)).unwrap();
            assert!(found.lo < f64::from(bytes) && f64::from(bytes) < found.hi, "{step}: {found:?}");
            assert!(found.lo > 0.8 * f64::from(bytes), "{step}: {found:?}");
        }
        // The same again elsewhere: what lies between is not read.
        addresses.extend(drawn(1024, 128 << 20).iter().map(|address| address + (1 << 40)));
        let twice = footprint_bytes(&addresses, Some(8)).unwrap();
        assert!((twice.value / f64::from(256 << 20) - 1.0).abs() < 0.1, "{twice:?}");
        let scattered = footprint_bytes(&drawn(1024, 1 << 40), Some(1 << 20)).unwrap();
        let all = (1_u64 << 40) as f64;
        assert!(0.5 * all < scattered.lo && scattered.hi < 1.2 * all, "{scattered:?}");
        assert!(scattered.lo < all && all < scattered.hi, "{scattered:?}");
    }

    #[test]
    fn a_stream_that_begins_at_many_offsets_reads_the_lines_of_all() {
        let mut random = Xorshift::new(88_172_645_463_325_252);
        let mib = |found: Estimate| [found.lo, found.value, found.hi].map(|bytes| bytes / f64::from(1 << 20));
        // Columns of 4096 rows, from each of that number of offsets, 64 bytes apart.
        for (step, offsets, elsewhere, bytes) in [
            (2048, 32, 0, 8 << 20),
            (2000, 31, 0, 8 << 20),
            (2048, 1, 0, 256 << 10),
            (2000, 1, 0, 256 << 10),
            (2048, 1, 50, 256 << 10),
            (65_600, 1025, 0, 65_600 << 12),
            (65_600, 1, 0, 256 << 10),
            (1 << 20, 1, 0, 256 << 10),
        ] {
            let mut addresses: Vec<u64> = (0..1000)
                .map(|_| (1 << 30) + random.below(4096) * step + random.below(offsets) * 64 + 8)
                .collect();
            addresses.extend((0..elsewhere).map(|_| (1 << 30) + random.below(4096 * step)));
            let found = footprint_bytes(&addresses, Some(step as i64)).unwrap();
            let [lo, value, hi] = mib(found);
            let is = f64::from(bytes) / f64::from(1 << 20);
            assert!(lo <= is && is <= hi * 1.02, "{step} {offsets}: {lo} {value} {hi}, not {is}");
            assert!(hi < 1.6 * is && lo > 0.6 * is, "{step} {offsets}: {lo} {value} {hi}, not {is}");
        }
        // A few rows, over and over again, each of which begins a page.
        let few: Vec<u64> = (0..1000).map(|_| random.below(16) * (1 << 20)).collect();
        let found = footprint_bytes(&few, Some(1 << 20)).unwrap();
        assert!((1000.0..1200.0).contains(&found.value), "{found:?}");
    }
}
