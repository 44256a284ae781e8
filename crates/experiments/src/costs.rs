//! **costs**: what plans of a harvest need, in two seconds: the latency of each cache and of
//! memory, the cost of a yield, how many misses overlap, how far the core looks ahead, its clock.
//!
//! The experiments of a whole measurement tell these with more care: where caches end, on which
//! pages, beside which traffic. Here caches are as large as the host claims, and one area in each
//! will do. All settings are interleaved.

use crate::context::{Context, Refused};
use crate::effort::ByEffort;
use crate::entry::{Entry, outcome_of};
use crate::latency::{load_chase, main_pages, warm_limit};
use crate::mlp::effective;
use crate::resample;
use crate::rob::{coarse, meaning};
use crate::uncached::uncached_nodes;
use crate::{cliff, yields};
use kernels::{Access, Filler, Spec};
use lab::arena::Placement;
use lab::campaign::Series;
use lab::chain::{self, Layout};
use lab::code::Loaded;
use lab::rigs::{ChaseRig, Rig, SideBySideRig};
use records::machine::{Level, Machine, ShortCosts, UserSwitch};
use std::time::{Duration, Instant};
use units::{Bytes, Quantity, Unit};

/// An area in a cache is this many times the cache before it, where there is space for that.
const TIMES_CACHE_BEFORE: u64 = 3;
const CHAINS: [u32; 12] = [1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32];
const GAPS_PER_OCTAVE: f64 = 3.0;
const BLOCK: Duration = Duration::from_micros(300);
const BLOCKS: usize = 9;
/// The least time for blocks, whatever building the memory took.
const LEAST_MEASURING: Duration = Duration::from_secs(1);

pub(crate) const ENTRY: Entry = Entry {
    name: "costs",
    about: "what plans of a harvest need",
    needs: None,
    seconds: ByEffort { quick: 2.0, normal: 2.0, thorough: 2.0 },
    run: |ctx, machine| machine.experiments.costs = Some(outcome_of(ctx, machine, run)),
    part: |all, name| Some(all.costs.as_ref()?.ending(name)),
};

fn run(ctx: &mut Context<'_>, _known: &Machine) -> Result<ShortCosts, Refused> {
    let began = Instant::now();
    let pages = main_pages(ctx);
    let nodes = uncached_nodes(ctx, pages)?;
    let (caches, layouts): (Vec<_>, Vec<_>) = in_caches(ctx).into_iter().unzip();
    let mut chains = chain::build(&layouts, pages, &Placement::FirstTouch, &mut ctx.rng)?;
    chains.push(nodes.chain().clone());
    let gaps = coarse(GAPS_PER_OCTAVE);
    let shapes = yields::switches_in_programs();

    // In this order below, too.
    let mut rigs: Vec<Box<dyn Rig>> = Vec::new();
    for chain in &chains {
        let warm = warm_limit(chain, ctx.last_cache().0);
        let warm_ticks = (ctx.tsc.value * 0.002) as u64;
        rigs.push(Box::new(ChaseRig::new(load_chase(Access::Read)?, chain.clone(), warm, warm_ticks)));
    }
    let beside = CHAINS.map(|chains| Spec::ParallelChains { chains });
    let apart = gaps.iter().map(|&gap| Spec::Rob { filler: Filler::Mixed, gap });
    for kernel in beside.into_iter().chain(apart) {
        rigs.push(Box::new(SideBySideRig::new(Loaded::of(&kernel)?, nodes.clone())));
    }
    for shape in &shapes {
        rigs.push(shape.rig()?);
    }
    let left = ctx.budget.saturating_sub(began.elapsed()).max(LEAST_MEASURING);
    ctx.time_budget = crate::time_budget::TimeBudget::of(left);
    ctx.time_budget.limit_overdraft(0.1);
    ctx.stage(0.2, 1.0);
    let series = ctx.measure(rigs, BLOCK, BLOCKS, 1.0).series;

    let (of_levels, rest) = part(&series, chains.len())?;
    let (of_chains, rest) = part(rest, CHAINS.len())?;
    let (of_gaps, of_switches) = part(rest, gaps.len())?;
    let levels = caches.into_iter().chain([memory()]).zip(of_levels);
    let levels = levels.map(|(level, series)| Level { latency: ctx.latency(series), ..level }).collect();
    let yields = shapes.iter().zip(of_switches);
    let yields: Vec<UserSwitch> = yields.map(|(shape, series)| shape.told(ctx.latency(series))).collect();
    Ok(ShortCosts {
        levels,
        yields,
        overlap: overlap(ctx, of_chains),
        reach: reach(ctx, &gaps, of_gaps),
        clock: clock(ctx, &series),
    })
}

fn part(series: &[Series], many: usize) -> Result<(&[Series], &[Series]), Refused> {
    series.split_at_checked(many).ok_or_else(|| Refused::failed("not all settings were measured"))
}

/// Each cache, and an area that it holds and the one before it does not.
fn in_caches(ctx: &Context<'_>) -> Vec<(Level, Layout)> {
    let line = ctx.line();
    let mut before = 0;
    let mut found = Vec::new();
    for cache in ctx.host.data_cache_sizes_of(ctx.cpu() as u32) {
        let Some(size) = cache.size else { continue };
        let area = match before {
            0 => size.0 / 2,
            before => (TIMES_CACHE_BEFORE * before).min(before.midpoint(size.0)),
        };
        before = size.0;
        let claimed = Quantity::claimed(size.0 as f64, Unit::Bytes);
        let level = level(format!("L{}", cache.level), claimed);
        found.push((level, Layout::random(Bytes((area / line).max(2) * line), line)));
    }
    found
}

fn memory() -> Level {
    level("DRAM".to_owned(), Quantity::unresolved("memory has no size here"))
}

fn level(name: String, size_claimed: Quantity) -> Level {
    let size = Quantity::unresolved("not measured");
    let latency = units::Latency::unresolved("not measured");
    Level { name, size, size_claimed, latency, note: None }
}

fn overlap(ctx: &mut Context<'_>, series: &[Series]) -> Quantity {
    let rounds = resample::curve(CHAINS.map(f64::from).into_iter().zip(series), |b| b.values[0]);
    let found = effective::throughput(&rounds, &mut ctx.rng);
    found.map_or_else(
        || Quantity::unresolved("too few chains were measured"),
        |found| Quantity::measured(found.sustained, Unit::Count),
    )
}

fn reach(ctx: &mut Context<'_>, gaps: &[u32], series: &[Series]) -> Quantity {
    let points = gaps.iter().map(|&gap| f64::from(gap)).zip(series);
    let samples = resample::curve(points, |b| b.values[0] * b.cycles_per_tick);
    cliff::find(&samples, &mut ctx.rng).map_or_else(
        || Quantity::unresolved("no cliff was found"),
        |cliff| Quantity::measured(meaning::instructions(cliff), Unit::Count),
    )
}

fn clock(ctx: &mut Context<'_>, series: &[Series]) -> Quantity {
    let ratios: Vec<f64> =
        series.iter().flat_map(Series::blocks).map(|block| block.cycles_per_tick).collect();
    if ratios.is_empty() {
        return Quantity::unresolved("no block was measured");
    }
    let ratio = lab::stats::median_interval(&ratios, &mut ctx.rng);
    Quantity::measured(ratio.scaled(ctx.tsc.value), Unit::Hertz)
}
