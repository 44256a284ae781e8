//! Which sizes, patterns and pages are measured. Pure, but for looking at the context's facts.

use super::ChaseSetting;
use crate::context::Context;
use lab::arena::PageKind;
use lab::chain::{Layout, Order};
use records::host::ThpMode;
use records::machine::{Access, Pattern};
use units::Bytes;

const SMALLEST: u64 = 1 << 10;
/// Pages in a window of the TLB-friendly pattern: few enough for any first-level TLB.
const WINDOW: u64 = 16 << 12;
/// Lines that the stride pattern moves at a time.
const STRIDE_LINES: u64 = 5;

/// The largest area: beyond four times the last cache, and what memory allows.
pub(crate) fn largest(ctx: &Context<'_>) -> Bytes {
    let wanted = ctx.last_cache().0 * ctx.pick(5, 8, 24);
    let floor = 64 << 20;
    Bytes(wanted.max(floor).min(ctx.max_memory.0).max(1 << 20).next_multiple_of(2 << 20))
}

/// Huge pages where they can be had, so that no TLB miss mixes in.
pub(crate) fn main_pages(ctx: &Context<'_>) -> PageKind {
    match ctx.host.pages.thp.enabled.value() {
        Some(ThpMode::Never) => PageKind::Small,
        _ => PageKind::Transparent,
    }
}

/// Page kinds for the extra curves.
pub(crate) fn other_pages(ctx: &Context<'_>, main: PageKind) -> Vec<PageKind> {
    let all: &[PageKind] = ctx.pick(
        &[PageKind::Small][..],
        &[PageKind::Small, PageKind::Huge2M, PageKind::Huge1G],
        &[PageKind::Small, PageKind::Huge2M, PageKind::Huge1G],
    );
    all.iter().copied().filter(|&k| k != main).collect()
}

pub(crate) fn would_help(kind: PageKind) -> String {
    match kind {
        PageKind::Huge2M => {
            "reserve some: echo 128 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages".to_owned()
        }
        PageKind::Huge1G => "reserve one at boot: hugepagesz=1G hugepages=1".to_owned(),
        PageKind::Small | PageKind::Cut | PageKind::Transparent => "more free memory".to_owned(),
    }
}

/// The main curve's first pass: three sizes an octave up to twice the last cache, then two.
pub(crate) fn coarse(ctx: &Context<'_>, line: u64, largest: Bytes) -> Vec<ChaseSetting> {
    let dense_until = ctx.last_cache().0 as f64;
    let mut sizes = Vec::new();
    let mut size = SMALLEST as f64;
    while size < largest.0 as f64 * 0.99 {
        sizes.push(size);
        size *= 2f64.powf(if size < dense_until { 1.0 / 3.0 } else { 0.5 });
    }
    sizes.push(largest.0 as f64);
    settings(&sizes, line, Pattern::Random, Access::Read)
}

/// Patterns that prefetchers can follow, one size an octave.
pub(crate) fn followed(ctx: &Context<'_>, line: u64, largest: Bytes) -> Vec<ChaseSetting> {
    if ctx.is_quick() {
        return Vec::new();
    }
    [Pattern::Windowed, Pattern::Forward, Pattern::Backward, Pattern::Stride]
        .into_iter()
        .flat_map(|pattern| settings(&octaves(8 << 10, largest.0), line, pattern, Access::Read))
        .collect()
}

/// The same random cycle, every line written.
pub(crate) fn written(ctx: &Context<'_>, line: u64, largest: Bytes) -> Vec<ChaseSetting> {
    let from = ctx.pick(16 << 10, 8 << 10, 4 << 10);
    let mut sizes = octaves(from, largest.0);
    if ctx.is_quick() {
        sizes = sizes.into_iter().step_by(2).collect();
    }
    settings(&sizes, line, Pattern::Random, Access::ReadModifyWrite)
}

/// One size an octave (every second one in quick runs), for the extra curves.
pub(crate) fn sparse(ctx: &Context<'_>, line: u64, largest: Bytes) -> Vec<ChaseSetting> {
    let mut sizes = octaves(16 << 10, largest.0);
    if ctx.is_quick() {
        sizes = sizes.into_iter().rev().step_by(2).collect();
    }
    settings(&sizes, line, Pattern::Random, Access::Read)
}

/// Sizes between neighbours whose latencies differ.
pub(crate) fn refine(ctx: &Context<'_>, line: u64, known: &[(u64, f64)]) -> Vec<ChaseSetting> {
    let (bend, pieces) = ctx.pick((1.12, 3), (1.05, 4), (1.03, 8));
    settings(&between(known, bend, pieces), line, Pattern::Random, Access::Read)
}

/// Up to `pieces - 1` sizes between neighbours whose latencies differ by more than the factor
/// `bend`, and beside such a step on either side, so that the very edge is seen.
fn between(known: &[(u64, f64)], bend: f64, pieces: usize) -> Vec<f64> {
    let bends: Vec<bool> = known.windows(2).map(|w| (w[1].1 / w[0].1).max(w[0].1 / w[1].1) > bend).collect();
    let mut sizes = Vec::new();
    for (i, w) in known.windows(2).enumerate() {
        let beside = (i > 0 && bends[i - 1]) || bends.get(i + 1) == Some(&true);
        let pieces = if bends[i] {
            pieces
        } else if beside {
            2
        } else {
            continue;
        };
        let (from, to) = (w[0].0 as f64, w[1].0 as f64);
        sizes.extend((1..pieces).map(|k| from * (to / from).powf(k as f64 / pieces as f64)));
    }
    sizes
}

fn octaves(from: u64, to: u64) -> Vec<f64> {
    let mut sizes: Vec<f64> = (0..64).map(|i| from << i).take_while(|&s| s < to).map(|s| s as f64).collect();
    sizes.push(to as f64);
    sizes
}

fn settings(sizes: &[f64], line: u64, pattern: Pattern, access: Access) -> Vec<ChaseSetting> {
    let pitch = if pattern == Pattern::Stride { line * STRIDE_LINES } else { line };
    let order = match pattern {
        Pattern::Random => Order::Random,
        Pattern::Windowed => Order::Windowed(WINDOW),
        Pattern::Forward | Pattern::Stride => Order::Forward,
        Pattern::Backward => Order::Backward,
    };
    let mut spans: Vec<u64> =
        sizes.iter().map(|&s| ((s / pitch as f64).round() as u64).max(2) * pitch).collect();
    spans.dedup();
    spans
        .into_iter()
        .map(|span| ChaseSetting {
            pattern,
            access,
            layout: Layout { span: Bytes(span), pitch, scatter: false, apart: false, order: order.clone() },
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_added_where_the_curve_bends() {
        let known = [(1024, 4.0), (2048, 4.0), (4096, 4.01), (8192, 14.0), (16384, 14.0), (32768, 14.0)];
        let sizes = between(&known, 1.05, 4);
        assert_eq!(sizes.iter().filter(|&&s| s > 4096.0 && s < 8192.0).count(), 3);
        assert!(sizes.iter().all(|&s| s > 2048.0 && s < 16384.0), "{sizes:?}");
        assert!(between(&known[..2], 1.05, 4).is_empty() && between(&[], 1.05, 4).is_empty());
    }

    #[test]
    fn spans_are_whole_nodes() {
        for s in settings(&[1000.0, 1024.0, 5000.5], 64, Pattern::Stride, Access::Read) {
            assert_eq!(s.layout.span.0 % s.layout.pitch, 0);
            assert!(s.layout.nodes() >= 2);
        }
    }
}
