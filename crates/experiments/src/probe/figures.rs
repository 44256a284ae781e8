//! From blocks to the probe's figures.

use super::ticks;
use crate::context::Context;
use lab::arena::PageKind;
use lab::campaign::{Block, Series};
use lab::core_clock;
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

/// Readings of the clock of a busy core, before the blocks.
pub(super) fn watch_clock(ctx: &Context<'_>) -> Vec<f64> {
    let began = Instant::now();
    let mut cycles_per_tick = Vec::new();
    while began.elapsed() < WATCH && !ctx.stop.asked() {
        cycles_per_tick.push(ctx.station.core_clock().precise(READING_FACTOR));
    }
    cycles_per_tick
}

/// The clock by these readings and by those around the blocks of the chains, which lie between the
/// probe's begin and its end: it may wander by more from second to second than in any one.
pub(super) fn core_clock(ctx: &Context<'_>, watched: &[f64], chased: &[Series]) -> Quantity {
    let clocks = |series: &Series| series.clocks().collect::<Vec<f64>>();
    // Each series spans the whole time: their readings are taken in turns.
    let chased: Vec<Vec<f64>> = chased.iter().map(clocks).collect();
    let longest = chased.iter().map(Vec::len).max().unwrap_or(0);
    let in_turns = (0..longest).flat_map(|i| chased.iter().filter_map(move |series| series.get(i)));
    let blocks = core_clock::over_time(&in_turns.copied().collect::<Vec<_>>());
    let watched = core_clock::over_time(watched);
    let Some(ratio) = watched.or(blocks) else {
        return Quantity::unresolved("stopped before it was read");
    };
    let all = blocks.unwrap_or(ratio);
    // The blocks stand for more time, where there are enough of them.
    let value = if longest >= LEAST_FOR_SPREAD { all.value } else { ratio.value };
    let ratio = Estimate::new(value, ratio.lo.min(all.lo), ratio.hi.max(all.hi));
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
