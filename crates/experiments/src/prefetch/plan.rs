//! Which patterns are walked, and in areas of what size.

use crate::context::Context;
use crate::latency;
use lab::chain::{Layout, Order};
use records::machine::Probe;
use units::Bytes;

pub(super) const PAGE_BYTES: u64 = 4096;

/// Memory, and, except in quick runs, what the last cache holds and the one before it does not.
pub(super) fn settings(ctx: &Context<'_>, line: u64) -> Vec<(Bytes, Probe)> {
    let memory = latency::largest(ctx).0 / ctx.pick(4, 2, 2);
    let caches = ctx.host.data_cache_sizes_of(ctx.cpu() as u32);
    let caches: Vec<u64> = caches.iter().filter_map(|c| Some(c.size?.0)).collect();
    let last = match caches[..] {
        [.., before, last] if !ctx.is_quick() => Some((before * 3).min(last / 4).max(before * 2)),
        _ => None,
    };
    let probes = probes(PAGE_BYTES / line, ctx.is_quick());
    last.into_iter()
        .chain([memory])
        .flat_map(|size| probes.iter().map(move |&probe| (Bytes(size.next_multiple_of(PAGE_BYTES)), probe)))
        .collect()
}

/// What is compared stands together, each group with a random order of its own area beside it.
fn probes(page: u64, quick: bool) -> Vec<Probe> {
    let (strides, back, runs, streams): (&[u64], &[u64], Vec<u64>, &[u64]) = if quick {
        (&[1, 2, 4, 16], &[1], vec![2, 4, 8, page / 2, page, page * 2], &[4, 16, 32])
    } else {
        let mut runs: Vec<u64> =
            vec![2, 3, 4, 5, 6, 8, 12, 16, 24, page / 2, page * 3 / 4, page, page * 2, page * 4, page * 16];
        runs.sort_unstable();
        runs.dedup();
        (&[1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128], &[1, 2, 4, 8], runs, &[2, 4, 8, 12, 16, 24, 32, 48, 64])
    };
    let mut probes = vec![Probe::Random, Probe::RandomInPages];
    probes.extend(strides.iter().map(|&lines| Probe::Forward { lines }));
    probes.extend(back.iter().map(|&lines| Probe::Backward { lines }));
    probes.extend(runs.iter().map(|&lines| Probe::Run { lines }));
    if !quick {
        probes.extend([4, 8, page].map(|lines| Probe::RunBackward { lines }));
    }
    probes.extend(streams.iter().map(|&count| Probe::Streams { count }));
    probes
}

pub(super) fn layout(probe: Probe, span: Bytes, line: u64) -> Layout {
    let order = match probe {
        Probe::Random => Order::Random,
        Probe::RandomInPages => Order::Windowed(PAGE_BYTES),
        Probe::Forward { lines } => Order::Strided { units: lines, descending: false },
        Probe::Backward { lines } => Order::Strided { units: lines, descending: true },
        Probe::Run { lines } => Order::Runs { bytes: lines * line, descending: false },
        Probe::RunBackward { lines } => Order::Runs { bytes: lines * line, descending: true },
        Probe::Streams { count } => Order::Streams { length: stream_length(span.0 / line, count, line) },
    };
    Layout { span, pitch: line, scatter: false, apart: false, order }
}

/// Streams begin at different lines of their pages and in different sets of the caches: begun all
/// at the same one, they would push each other out however few they are.
fn stream_length(lines: u64, count: u64, line: u64) -> u64 {
    let (page, even) = (PAGE_BYTES / line, lines / count);
    let odd = page / 2 - 3;
    if even > page * (count + 2) {
        even - (even - odd) % page
    } else {
        // Too little to choose from; an odd number will do.
        (even.max(1) - 1) | 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_the_number_named() {
        for lines in [1 << 16, 1 << 21, 12_345_678] {
            for count in [2, 4, 12, 16, 48, 64] {
                let length = stream_length(lines, count, 64);
                assert_eq!(lines / length, count, "{lines} lines");
                assert_eq!(length % 2, 1);
            }
        }
    }

    #[test]
    fn pages_of_long_lines_are_shorter_runs() {
        let probes = probes(32, false);
        assert!(probes.contains(&Probe::Run { lines: 32 }) && probes.contains(&Probe::Run { lines: 64 }));
    }
}
