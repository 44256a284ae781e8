//! Single loads, each timed by itself, in the middle of every level: how long most of them take,
//! and the slowest of a hundred and of a thousand.
//!
//! A block's median hides what a request's tail is made of: a refresh of the memory, a page walk, a
//! line in another core's cache. What reading the clock takes is measured beside it, by shots
//! without a load, and taken off.

use super::load_chase;
use crate::context::{Context, Refused};
use kernels::{Fence, Spec};
use lab::arena::{PageKind, Placement};
use lab::campaign::Series;
use lab::chain::{self, Chain, Layout};
use lab::code::Loaded;
use lab::rigs::{ChaseRig, EachShotRig, NodeSupply, Rig};
use records::machine::{Level, SingleLoads};
use std::time::Duration;
use units::{Bytes, Latency, Unit};

/// The areas: well inside each level.
fn areas(ctx: &Context<'_>, levels: &[Level], largest: Bytes) -> Vec<(String, Bytes)> {
    let line = ctx.line();
    let mut before: Option<f64> = None;
    let mut areas = Vec::new();
    for level in levels {
        let size = level.size.value();
        let inside = match (before, size) {
            (_, None) => largest.0 as f64,
            (None, Some(size)) => size / 4.0,
            (Some(smaller), Some(size)) => (smaller * size).sqrt(),
        };
        let span = (inside / line as f64).round().max(2.0) as u64 * line;
        if span <= largest.0 {
            areas.push((level.name.clone(), Bytes(span)));
        }
        before = size;
    }
    areas
}

pub(super) fn measured(
    ctx: &mut Context<'_>,
    levels: &[Level],
    pages: PageKind,
    largest: Bytes,
    share: f64,
) -> Result<Vec<SingleLoads>, Refused> {
    let areas = areas(ctx, levels, largest);
    if areas.is_empty() {
        return Ok(Vec::new());
    }
    let layouts: Vec<Layout> = areas.iter().map(|(_, span)| Layout::random(*span, ctx.line())).collect();
    let chains = chain::build(&layouts, pages, &Placement::FirstTouch, &mut ctx.rng)?;
    let mut rigs: Vec<Box<dyn Rig>> = Vec::new();
    for chain in &chains {
        rigs.push(Box::new(rig(ctx, chain, 1)?));
    }
    rigs.push(Box::new(rig(ctx, &chains[0], 0)?));
    let (block, blocks) = ctx.pick((500, 9), (800, 21), (1000, 51));
    let gathered = ctx.measure(rigs, Duration::from_micros(block), blocks, share);
    let (empty, loads) = gathered.series.split_last().expect("the shots without a load");
    let off = empty.estimate(&mut ctx.rng).map_or(0.0, |e| e.value);
    let clock = ctx.latency(empty);
    let supply = super::supply_of(&chains, pages);
    let mut single = Vec::new();
    for ((level, area), series) in areas.into_iter().zip(loads) {
        single.push(SingleLoads {
            level,
            area,
            pages: supply.clone(),
            shots: series.counted().iter().map(|block| block.values[3] as u64).sum(),
            clock: clock.clone(),
            p50: percentile(ctx, series, 0, off),
            p99: percentile(ctx, series, 1, off),
            p999: percentile(ctx, series, 2, off),
        });
    }
    Ok(single)
}

fn rig(ctx: &Context<'_>, chain: &Chain, accesses: u32) -> Result<EachShotRig, Refused> {
    let kernel = Loaded::of(&Spec::Sequence { accesses, fence: Fence::Lfence })?;
    let warm_ticks = (ctx.tsc.value * ctx.pick(0.02, 0.1, 0.4)) as u64;
    let limit = super::warm_limit(chain, ctx.last_cache().0);
    let warmer = ChaseRig::new(load_chase(kernels::Access::Read)?, chain.clone(), limit, warm_ticks);
    Ok(EachShotRig::new(kernel, NodeSupply::of(chain.clone()), warmer))
}

/// The median block's percentile, less what the clock takes.
fn percentile(ctx: &mut Context<'_>, series: &Series, which: usize, off: f64) -> Latency {
    let ns_per_tick = ctx.ns_per_tick();
    let ticks = |block: &lab::campaign::Block| (block.values[which] - off).max(0.0);
    Latency {
        ns: ctx.quantity(series, Unit::Nanos, |b| ticks(b) * ns_per_tick),
        cycles: ctx.quantity(series, Unit::Cycles, |b| ticks(b) * b.cycles_per_tick),
        ticks: ctx.quantity(series, Unit::Ticks, ticks),
    }
}
