//! Which sizes and strides are measured.

use crate::context::Context;
use crate::stride_choice::{LEAST_STEPS, StrideChoice};
use records::machine::Direction;
use units::Bytes;

pub(super) const PAGE_BYTES: u64 = 4096;

/// One cell of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StrideSetting {
    pub size: Bytes,
    pub stride: Bytes,
    pub direction: Direction,
}

/// Odd numbers of lines among the powers of two: those fall into few sets of a cache, these into
/// all.
const FORWARD: &[u64] = &[8, 16, 32, 64, 128, 192, 256, 320, 512, 1024, 2048, 4096, 4160, 8192, 16384];
const BACKWARD: &[u64] = &[32, 64, 128, 256, 512, 1024, 4096];
const QUICK_FORWARD: &[u64] = &[16, 32, 64, 128, 256, 512, 1024, 4096];
const QUICK_BACKWARD: &[u64] = &[64, 256];

pub(super) fn pair_distances() -> Vec<u64> {
    vec![8, 16, 32, 64, 128, 256, 512]
}

/// Well inside the second cache: then whether the first cache has the line shows its size, and
/// neither noise of the memory nor a prefetcher of the second cache disturbs that.
pub(super) fn pair_area(ctx: &Context<'_>) -> Bytes {
    let caches = claimed(ctx);
    let first = caches.first().copied().unwrap_or(32 << 10);
    let second = caches.get(1).copied().unwrap_or(first * 8);
    Bytes((first * 6).min(second / 2).max(first * 2))
}

pub(super) fn settings(ctx: &Context<'_>, line: u64, largest: Bytes) -> Vec<StrideSetting> {
    let StrideChoice { strides, sizes } = ctx.strides;
    let sizes: Vec<u64> = match sizes[..] {
        [largest] => below(largest.0),
        [] if ctx.is_quick() => quick_sizes(&claimed(ctx), largest.0),
        [] => {
            let every = ctx.pick(2, 2, 1);
            (14..40).step_by(every).map(|i| 1 << i).take_while(|&s| s <= largest.0 / 2).collect()
        }
        _ => sizes.iter().map(|size| size.0).collect(),
    };
    if !strides.is_empty() {
        let cell = |size: u64, stride: Bytes| {
            let fits = stride.0 * LEAST_STEPS <= size;
            fits.then_some(StrideSetting { size: Bytes(size), stride, direction: Direction::Forward })
        };
        return sizes.iter().flat_map(|&size| strides.iter().filter_map(move |&s| cell(size, s))).collect();
    }
    let (forward, backward) =
        ctx.pick((QUICK_FORWARD, QUICK_BACKWARD), (FORWARD, BACKWARD), (FORWARD, BACKWARD));
    sizes.iter().flat_map(|&size| row(size, line, forward, backward)).collect()
}

/// The sizes that lmbench's `lat_mem_rd` measures, from 512 bytes on, two an octave from 2 KiB on;
/// and this one.
fn below(largest: u64) -> Vec<u64> {
    let octaves = (9..63).map(|i| 1_u64 << i);
    let sizes = octaves.flat_map(|size| [size, size + size / 2]).filter(|size| ![768, 1536].contains(size));
    let mut sizes: Vec<u64> = sizes.take_while(|&size| size < largest).collect();
    sizes.push(largest);
    sizes
}

/// The sizes of the caches that the host claims.
fn claimed(ctx: &Context<'_>) -> Vec<u64> {
    let caches = ctx.host.data_cache_sizes_of(ctx.cpu() as u32);
    caches.iter().filter_map(|c| Some(c.size?.0)).collect()
}

/// One size inside each cache, one in memory.
fn quick_sizes(caches: &[u64], largest: u64) -> Vec<u64> {
    let mut sizes: Vec<u64> = caches
        .windows(2)
        .map(|w| (w[0] * 4).min(w[1] / 2))
        .filter(|&s| s < largest / 4)
        .chain([largest / 4])
        .map(|s| s.next_multiple_of(PAGE_BYTES))
        .collect();
    sizes.dedup();
    sizes
}

fn row(size: u64, line: u64, forward: &[u64], backward: &[u64]) -> Vec<StrideSetting> {
    let fits = |&stride: &u64| {
        stride * LEAST_STEPS <= size && if stride < line { line % stride == 0 } else { stride % line == 0 }
    };
    let setting =
        |stride: u64, direction| StrideSetting { size: Bytes(size), stride: Bytes(stride), direction };
    let mut row = vec![setting(line, Direction::Random), setting(line, Direction::Pages)];
    row.extend(forward.iter().copied().filter(fits).map(|s| setting(s, Direction::Forward)));
    row.extend(backward.iter().copied().filter(fits).map(|s| setting(s, Direction::Backward)));
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_what_fits() {
        let row = row(16384, 128, FORWARD, BACKWARD);
        assert!(row.iter().all(|s| s.stride.0 * LEAST_STEPS <= 16384));
        // 192 is not a whole number of these lines, 32 is a whole part of one.
        assert!(!row.iter().any(|s| s.stride.0 == 192) && row.iter().any(|s| s.stride.0 == 32));
    }

    #[test]
    fn sizes_below_one_are_those_of_lat_mem_rd() {
        let kib = |sizes: &[f64]| sizes.iter().map(|&size| (size * 1024.0) as u64).collect::<Vec<_>>();
        assert_eq!(below(16 << 10), kib(&[0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0]));
        let last = below(2000 << 20);
        assert_eq!(last[last.len() - 2..], [1536 << 20, 2000 << 20]);
    }

    #[test]
    fn quick_sizes_are_one_a_level() {
        let sizes = quick_sizes(&[32 << 10, 1 << 20, 32 << 20], 160 << 20);
        assert_eq!(sizes, [128 << 10, 4 << 20, 40 << 20]);
        assert_eq!(quick_sizes(&[], 64 << 20), [16 << 20]);
    }
}
