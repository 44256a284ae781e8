//! **probe**: figures that hosts of the same hardware should share, in ten seconds.
//!
//! ```text
//! fault                        figures that give it away
//! slow or missing DIMM         bandwidth_all, copy_all, a node's bandwidth, node_balance
//! wrong memory speed           bandwidth_all, memory_latency
//! other NPS or interleaving    nodes of the host, memory_latency, bandwidth_one
//! prefetchers off              prefetch_gain, bandwidth_one
//! huge pages off               huge_pages, memory_latency
//! noisy neighbour              void_share, cache_latency, memory_spread
//! power cap                    core_clock
//! ```
//!
//! All settings are interleaved, block by block, for as long as there is time: so a neighbour that
//! comes and goes is seen in all of them alike. The memory is built first; what is left of the time
//! is for blocks.

mod figures;
mod nodes;

use crate::bandwidth::{StreamAreas, load_stream};
use crate::context::{Context, Refused};
use crate::crews;
use crate::effort::ByEffort;
use crate::entry::{Entry, outcome_of};
use crate::latency::{load_chase, main_pages};
use crate::time_budget::TimeBudget;
use lab::arena::{PageKind, Placement};
use lab::campaign::Series;
use lab::chain::{self, Chain, Layout, Order};
use lab::crew::CrewRig;
use lab::rigs::{ChaseRig, Rig, widest};
use records::machine::{FleetProbe, Machine, PageSupply, StreamKind};
use std::time::{Duration, Instant};
use units::{Bytes, Latency, Quantity};

/// Chains in memory are this many times as large as the last cache.
const TIMES_LAST_CACHE: u64 = 3;
const MOST_CHAIN: u64 = 512 << 20;
const LEAST_CHAIN: u64 = 64 << 20;
/// Streams together take no more than this: filling it takes time, which is short.
const MOST_STREAMED: Bytes = Bytes::gib(2);
const WARM_NODES: u64 = 1 << 12;
const BLOCK: Duration = Duration::from_micros(400);
/// Blocks of a setting; beyond that, more do not make intervals narrower than hosts differ.
const BLOCKS: usize = 400;
/// The least time for blocks, whatever building the memory took.
const LEAST_MEASURING: Duration = Duration::from_secs(1);

pub(crate) const ENTRY: Entry = Entry {
    name: "probe",
    about: "figures that give away faults in a fleet",
    needs: None,
    seconds: ByEffort { quick: 10.0, normal: 10.0, thorough: 10.0 },
    run: |ctx, machine| machine.experiments.probe = Some(outcome_of(ctx, machine, run)),
    part: |all, name| Some(all.probe.as_ref()?.ending(name)),
};

fn run(ctx: &mut Context<'_>, _known: &Machine) -> Result<FleetProbe, Refused> {
    let began = Instant::now();
    let watched = figures::watch_clock(ctx);
    let chains = Chains::build(ctx)?;
    let order = crews::joining_order(ctx.host, ctx.cpu() as u32);
    // Without one, as where the counters of CPUs differ, the figures of one CPU are left.
    let (crew, no_crew) = match crews::crew(ctx, &order) {
        Ok(crew) => (Some(crew), String::new()),
        Err(refused) => (None, refused.why),
    };
    let areas = StreamAreas::new(ctx, &order, TIMES_LAST_CACHE, MOST_STREAMED)?;
    let node_plans = if crew.is_some() { nodes::plans(ctx, &order)? } else { Vec::new() };

    // In this order below, too.
    let mut rigs: Vec<Box<dyn Rig + '_>> = Vec::new();
    for chain in [&chains.cache, &chains.memory, &chains.forward, &chains.small_pages] {
        // No cache holds the larger chains, and a short walk leaves more of a time slice to the
        // block: on busy hosts that decides whether it counts.
        let warm = if chain.layout.span > chains.cache.layout.span { WARM_NODES } else { chain.nodes() };
        let warm_ticks = (ctx.tsc.value * 0.002) as u64;
        let rig = ChaseRig::new(load_chase(kernels::Access::Read)?, chain.clone(), warm, warm_ticks);
        let begin = ctx.rng.below(chain.nodes());
        rigs.push(Box::new(rig.beginning_at(begin)));
    }
    let read = load_stream(StreamKind::Read, widest(), 0)?;
    let copy = load_stream(StreamKind::Copy, widest(), 0)?;
    if let Some(crew) = &crew {
        for (cpus, kernel) in [(&order[..1], &read), (&order[..], &read), (&order[..], &copy)] {
            rigs.push(Box::new(CrewRig::new(crew, areas.members(cpus, kernel, None))));
        }
        for plan in &node_plans {
            rigs.push(Box::new(CrewRig::new(crew, areas.members(&plan.cpus, &read, None))));
            rigs.push(Box::new(CrewRig::new(crew, vec![plan.chaser(ctx)?])));
        }
    }
    let settings = rigs.len();

    let left = ctx.budget.saturating_sub(began.elapsed()).max(LEAST_MEASURING);
    ctx.time_budget = TimeBudget::of(left);
    ctx.time_budget.limit_overdraft(0.1);
    ctx.stage(0.1, 1.0);
    let gathered = ctx.measure(rigs, BLOCK, BLOCKS, 1.0);
    let Some((chased, crewed)) = gathered.series.split_at_checked(4) else {
        return Err(Refused::failed(format!("{settings} settings gave {} series", gathered.series.len())));
    };
    let latencies: Vec<Latency> = chased.iter().map(|series| ctx.latency(series)).collect();
    let (streams, of_nodes) = crewed.split_at(crewed.len().min(3));
    let rates: Vec<Quantity> = [(1, 64), (order.len(), 64), (order.len(), 128)]
        .into_iter()
        .zip(streams)
        .map(|((threads, bytes), series)| figures::rate(ctx, series, threads, bytes))
        .collect();
    let nodes = nodes::probed(ctx, &node_plans, of_nodes);
    let [cache_latency, memory_latency, forward, small_pages_latency] = four(latencies)?;
    let mut rates = rates.into_iter();
    let mut next = || rates.next().unwrap_or_else(|| Quantity::unresolved(no_crew.as_str()));
    Ok(FleetProbe {
        core_clock: figures::core_clock(ctx, &watched, chased),
        prefetch_gain: crews::ratio(&memory_latency.ticks, &forward.ticks),
        memory_spread: figures::spread(&chased[1]),
        cache_latency,
        cache_area: chains.cache.layout.span,
        memory_latency,
        memory_area: chains.memory.layout.span,
        small_pages_latency,
        huge_pages: figures::huge_pages(chains.pages, &chains.supply),
        pages: chains.supply,
        bandwidth_one: next(),
        bandwidth_all: next(),
        copy_all: next(),
        threads: order.len() as u32,
        void_share: figures::void_share(&gathered.series),
        node_balance: nodes::balance(&nodes),
        nodes,
        notes: Vec::new(),
    })
}

fn four(latencies: Vec<Latency>) -> Result<[Latency; 4], Refused> {
    latencies.try_into().map_err(|_| Refused::failed("not all latencies were measured"))
}

/// The chains that one CPU walks.
struct Chains {
    cache: Chain,
    memory: Chain,
    forward: Chain,
    small_pages: Chain,
    pages: PageKind,
    supply: PageSupply,
}

impl Chains {
    fn build(ctx: &mut Context<'_>) -> Result<Self, Refused> {
        let (line, last) = (ctx.line(), ctx.last_cache());
        let most = ctx.max_memory.0 / 3;
        let memory = (last.0 * TIMES_LAST_CACHE).clamp(LEAST_CHAIN, MOST_CHAIN).min(most).max(1 << 20);
        // An eighth of the last cache: more would take long to warm before each block.
        let before = ctx.host.data_cache_sizes_of(ctx.cpu() as u32);
        let before = before.iter().rev().nth(1).and_then(|cache| cache.size).unwrap_or(Bytes(0));
        let cache = (last.0 / 8).max(before.0 * 3).min(memory / 2).max(64 << 10);
        let whole = |bytes: u64| Bytes(bytes / line * line);
        let forward = Layout { order: Order::Forward, ..Layout::random(whole(memory), line) };
        let layouts = [Layout::random(whole(cache), line), Layout::random(whole(memory), line), forward];
        let pages = main_pages(ctx);
        let built = chain::build(&layouts, pages, &Placement::FirstTouch, &mut ctx.rng)?;
        let supply = crate::latency::supply_of(&built, pages);
        let small = [Layout::random(whole(memory), line)];
        let small = chain::build(&small, PageKind::Small, &Placement::FirstTouch, &mut ctx.rng)?;
        let mut chains = built.into_iter().chain(small);
        match (chains.next(), chains.next(), chains.next(), chains.next()) {
            (Some(cache), Some(memory), Some(forward), Some(small_pages)) => {
                Ok(Self { cache, memory, forward, small_pages, pages, supply })
            }
            _ => Err(Refused::failed("not all chains were built")),
        }
    }
}

/// All valid blocks of a series.
fn ticks(series: &Series) -> Vec<f64> {
    series.counted().iter().map(|block| block.values[0]).collect()
}
