//! **threads**: what several threads take from each other.
//!
//! 1, 2, 4 … threads on as many CPUs, each with a chain of its own, in three sizes: within the
//! private caches, within the last cache while few share it, and beyond all caches. Then: which
//! caches do pairs of CPUs share?

mod sharing;

use crate::context::{Context, Refused};
use crate::crews::{self, ClaimedCache};
use crate::effort::ByEffort;
use crate::entry::{Entry, outcome_of};
use crate::latency::{load_chase, main_pages};
use lab::arena::Placement;
use lab::chain::{self, Chain, Layout};
use lab::code::Loaded;
use lab::crew::{CrewMember, CrewRig};
use lab::rigs::{ChaseRig, Rig};
use records::host::Host;
use records::machine::{Crowd, Machine, ThreadLatency, Threads};
use std::time::Duration;
use units::{Bytes, Estimate, Quantity, Unit};

/// The most memory for the chains of all threads together, so that building them takes no longer.
const MOST_CHAINS: u64 = 4 << 30;

pub(crate) const ENTRY: Entry = Entry {
    name: "threads",
    about: "several threads at once: what they take from each other, which CPUs share which cache",
    needs: Some("time stamp counters that agree across CPUs"),
    seconds: ByEffort { quick: 3.0, normal: 15.0, thorough: 60.0 },
    run: |ctx, machine| machine.experiments.threads = Some(outcome_of(ctx, machine, run)),
    part: |all, name| Some(all.threads.as_ref()?.ending(name)),
};

fn run(ctx: &mut Context<'_>, _known: &Machine) -> Result<Threads, Refused> {
    let order = crews::joining_order(ctx.host, ctx.cpu() as u32);
    let crew = crews::crew(ctx, &order)?;
    let kernel = load_chase(kernels::Access::Read)?;

    ctx.stage(0.0, 0.6);
    let mut plan = crowds(ctx, &order);
    let widest = plan.iter().map(|p| p.threads).max().unwrap_or(1);
    let sizes = distinct(plan.iter().map(|p| p.size));
    let mut chains = Vec::new();
    for (i, &cpu) in order[..widest].iter().enumerate() {
        // Later threads need no space for sizes at which only earlier ones take part.
        let mine: Vec<Bytes> =
            sizes.iter().copied().filter(|s| plan.iter().any(|p| p.size == *s && p.threads > i)).collect();
        chains.push(ThreadChains::build(ctx, cpu, &mine)?);
        if ctx.stop.asked() {
            break;
        }
    }
    plan.retain(|p| p.threads <= chains.len());
    let rigs = plan
        .iter()
        .map(|p| {
            let members = order[..p.threads]
                .iter()
                .zip(&chains)
                .map(|(&cpu, stock)| chaser(ctx, cpu, &kernel, stock.of(p.size)))
                .collect();
            Box::new(CrewRig::new(&crew, members)) as Box<dyn Rig>
        })
        .collect();
    let gathered = ctx.measure(rigs, block(ctx), ctx.pick(11, 41, 121), 0.6);
    drop(chains);
    let mut measured: Vec<Crowd> = Vec::new();
    for (p, series) in plan.iter().zip(&gathered.series) {
        let latency = crews::median_latency(ctx, series, p.threads);
        let per_thread = order[..p.threads]
            .iter()
            .enumerate()
            .map(|(i, &cpu)| ThreadLatency { cpu, ns: crews::latency_of(ctx, series, i).ns })
            .collect();
        let alone = measured.iter().find(|c| c.size == p.size && c.threads == 1);
        let slowdown = match alone {
            Some(alone) => crews::ratio(&latency.ns, &alone.latency.ns),
            None if p.threads == 1 => Quantity::measured(Estimate::exact(1.0), Unit::Ratio),
            None => Quantity::unresolved("a single thread was not measured"),
        };
        measured.push(Crowd {
            within: p.within.clone(),
            size: p.size,
            threads: p.threads as u32,
            latency,
            slowdown,
            per_thread,
        });
    }

    ctx.stage(0.6, 1.0);
    let (sharing, notes) =
        if ctx.stop.asked() { Default::default() } else { sharing::run(ctx, &crew, &kernel, &order)? };
    Ok(Threads { order, crowds: measured, sharing, notes })
}

pub(crate) fn block(ctx: &Context<'_>) -> Duration {
    Duration::from_micros(ctx.pick(1500, 2000, 3000))
}

/// The most ticks for which a chain is walked to warm up before a block.
fn warmth(ctx: &Context<'_>) -> u64 {
    (ctx.tsc.value * ctx.pick(0.03, 0.06, 0.2)) as u64
}

/// A member that chases this chain.
pub(crate) fn chaser(ctx: &mut Context<'_>, cpu: u32, kernel: &Loaded, chain: &Chain) -> (usize, CrewMember) {
    let begin = ctx.rng.below(chain.nodes());
    let fits = chain.layout.span.0 <= ctx.last_cache().0;
    let warm_limit = if fits { chain.nodes() } else { 1 << 14 };
    let rig = ChaseRig::new(kernel.clone(), chain.clone(), warm_limit, warmth(ctx)).beginning_at(begin);
    (cpu as usize, Box::new(rig))
}

/// A number of threads, each with an area of this size.
#[derive(Clone, Debug, PartialEq)]
struct PlannedCrowd {
    within: String,
    size: Bytes,
    threads: usize,
}

fn crowds(ctx: &Context<'_>, order: &[u32]) -> Vec<PlannedCrowd> {
    let most = ctx.max_memory.0.min(MOST_CHAINS);
    plan_crowds(ctx.host, order, ctx.pick(5, 8, 12), most)
}

/// Half of the private caches, an eighth of the last one, and half of `times` the last one; as many
/// threads as `most` allows.
fn plan_crowds(host: &Host, order: &[u32], times: u64, most: u64) -> Vec<PlannedCrowd> {
    let caches = crews::caches(host, order[0]);
    let last = caches.last().map_or(Bytes::mib(32), |c| c.size);
    let mut sizes: Vec<(String, Bytes)> = Vec::new();
    if let [.., private, _] = &caches[..] {
        sizes.push((private.name.clone(), Bytes(private.size.0 / 2)));
    }
    if let (Some(cache), Some(part)) = (caches.last(), last_cache_part(&caches)) {
        sizes.push((cache.name.clone(), part));
    }
    // Memory, whatever the claims: at least 64 MiB.
    sizes.push(("DRAM".to_owned(), Bytes((last.0 * times / 2).max(64 << 20).min(most))));
    let mut plan = Vec::new();
    for (within, size) in sizes {
        for threads in crews::crowd_sizes(order.len()) {
            if threads == 1 || threads as u64 * size.0 <= most {
                plan.push(PlannedCrowd { within: within.clone(), size, threads });
            }
        }
    }
    plan
}

/// A modest part of the last cache, which lies in no cache before it and most likely in what we get
/// of it.
fn last_cache_part(caches: &[ClaimedCache]) -> Option<Bytes> {
    let last = caches.last()?.size.0;
    let before = caches.iter().rev().nth(1).map_or(0, |c| c.size.0);
    Some(Bytes((last / 8).max(before * 2).min(last / 2)))
}

/// One thread's chains, in memory of its own node.
pub(crate) struct ThreadChains(Vec<Chain>);

impl ThreadChains {
    pub(crate) fn build(ctx: &mut Context<'_>, cpu: u32, sizes: &[Bytes]) -> Result<Self, Refused> {
        let line = ctx.line();
        let layouts: Vec<Layout> = sizes.iter().map(|&s| Layout::random(s, line)).collect();
        let placement = crews::node_to_bind(ctx.host, cpu)
            .map_or(Placement::FirstTouch, |node| Placement::Bind(vec![node]));
        Ok(Self(chain::build(&layouts, main_pages(ctx), &placement, &mut ctx.rng)?))
    }

    pub(crate) fn of(&self, size: Bytes) -> &Chain {
        self.0.iter().find(|c| c.layout.span == size).expect("a chain was built for each size")
    }
}

fn distinct(sizes: impl Iterator<Item = Bytes>) -> Vec<Bytes> {
    let mut all: Vec<Bytes> = sizes.collect();
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crews::tests::big_host;

    #[test]
    fn crowds_keep_to_the_memory_there_is() {
        let host = big_host();
        let order = crews::joining_order(&host, 0);
        let plan = plan_crowds(&host, &order, 8, 1 << 30);
        let of = |within: &str| {
            let threads: Vec<usize> = plan.iter().filter(|p| p.within == within).map(|p| p.threads).collect();
            threads
        };
        assert_eq!(of("L2"), [1, 2, 4, 8, 16]);
        assert_eq!(of("L3"), [1, 2, 4, 8, 16]);
        assert_eq!(of("DRAM"), [1, 2, 4, 8], "16 times 128 MiB are too much");
        let bare = plan_crowds(&Host::default(), &[0], 4, 1 << 20);
        assert_eq!(bare.len(), 1, "no caches known: memory only");
    }
}
