//! From blocks to the probe's figures.

use super::ticks;
use crate::context::Context;
use lab::arena::PageKind;
use lab::campaign::{Block, Series};
use lab::crew::CrewRig;
use lab::stats;
use records::machine::PageSupply;
use std::time::{Duration, Instant};
use units::{Estimate, Quantity, Unit, share};

/// How long the core clock is watched.
const WATCH: Duration = Duration::from_millis(200);
const READING_FACTOR: u64 = 8;
/// Fewer blocks have no 95th percentile.
const LEAST_FOR_SPREAD: usize = 20;

/// The clock of a busy core, and so that of the blocks to come.
pub(super) fn core_clock(ctx: &mut Context<'_>) -> Quantity {
    let began = Instant::now();
    let mut cycles_per_tick = Vec::new();
    while began.elapsed() < WATCH && !ctx.stop.asked() {
        cycles_per_tick.push(ctx.station.core_clock().precise(READING_FACTOR));
    }
    if cycles_per_tick.is_empty() {
        return Quantity::unresolved("stopped before it was read");
    }
    let ratio = stats::median_interval(&cycles_per_tick, &mut ctx.rng);
    let core = Estimate::new(ratio.value * ctx.tsc.value, ratio.lo * ctx.tsc.lo, ratio.hi * ctx.tsc.hi);
    Quantity::measured(core, Unit::Hertz)
}

/// What these members move together, with this number of bytes for a line of each array.
pub(super) fn rate(ctx: &mut Context<'_>, series: &Series, members: usize, bytes: u32) -> Quantity {
    let scale = f64::from(bytes) * ctx.tsc.value;
    let rate = move |block: &Block| (0..members).map(|i| scale / CrewRig::ticks(block, i)).sum();
    ctx.quantity(series, Unit::BytesPerSecond, rate)
}

/// The 95th percentile of blocks over the 5th; its interval by order statistics of the blocks.
pub(super) fn spread(series: &Series) -> Quantity {
    let sorted = stats::sorted(&ticks(series));
    if sorted.len() < LEAST_FOR_SPREAD {
        return Quantity::unresolved(format!("{} blocks are too few for percentiles", sorted.len()));
    }
    let at = |q: f64| stats::quantile_sorted(&sorted, q.clamp(0.0, 1.0));
    // The rank of a percentile varies by that of a binomial count.
    let n = sorted.len() as f64;
    let half = 1.96 * (0.05 * 0.95 / n).sqrt();
    let value = at(0.95) / at(0.05);
    let (lo, hi) = (at(0.95 - half) / at(0.05 + half), at(0.95 + half) / at(0.05 - half));
    Quantity::measured(Estimate::new(value, lo.min(value), hi.max(value)), Unit::Ratio)
}

/// A share of what was asked for, as the kernel says; none where the host switches it off.
pub(super) fn huge_pages(asked: PageKind, supply: &PageSupply) -> Quantity {
    let share = if asked == PageKind::Transparent { supply.share } else { 0.0 };
    Quantity::measured(Estimate::exact(share), Unit::Ratio)
}

/// The blocks that were void, of all.
pub(super) fn void_share(series: &[Series]) -> Quantity {
    let void: usize = series.iter().map(|series| series.voids().total()).sum();
    let all = void + series.iter().map(Series::valid).sum::<usize>();
    match share(void as u64, all as u64) {
        None => Quantity::unresolved("no blocks"),
        Some(share) => Quantity::measured(share, Unit::Ratio),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_that_were_not_asked_for_are_none() {
        let supply = PageSupply { asked: "4K".to_owned(), share: 1.0 };
        assert_eq!(huge_pages(PageKind::Small, &supply).value(), Some(0.0));
        let supply = PageSupply { asked: "thp".to_owned(), share: 0.75 };
        assert_eq!(huge_pages(PageKind::Transparent, &supply).value(), Some(0.75));
    }
}
