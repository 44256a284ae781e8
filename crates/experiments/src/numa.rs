//! **numa**: where memory lies, and what that costs.
//!
//! The same memory is placed on the node of the measuring CPU, on each other node, interleaved over
//! all, and not at all ("placement off": threads on all nodes touch its pages first, at random).
//! The kernel is asked where the pages lie before a placement is believed. Each placement gets two
//! figures: the latency of one chain of loads, and the time of a load when many chains run at once.
//! An interconnect adds more to the first than to the second, since it carries many lines at a
//! time; the ratio says how many misses were under way. Bursts of N accesses give the effective
//! parallelism as the mlp experiment defines it. Then every node with CPUs is measured
//! against every node with memory.

use crate::context::{Context, Refused};
use crate::crews;
use crate::effort::ByEffort;
use crate::entry::{Entry, outcome_of};
use crate::latency::{load_chase, main_pages};
use crate::mlp;
use kernels::{Spec, StreamOp};
use lab::arena::{Arena, Placement};
use lab::campaign::Block;
use lab::chain::{self, Chain, Layout};
use lab::code::Loaded;
use lab::crew::{CrewMember, CrewRig};
use lab::rigs::{ChaseRig, NodeSupply, Region, Rig, SideBySideRig, StreamRig, widest};
use records::host::{Host, Node};
use records::machine::{Machine, NodePages, NodePair, Numa, PlacementKind, PlacementResult};
use std::sync::Arc;
use std::time::Duration;
use units::{Bytes, Quantity, Unit};

/// Chains at once: more misses than any core keeps under way, and few enough that nearly all stay
/// in registers.
const PARALLEL_CHAINS: u32 = 16;
/// Pages of each placement whose node is looked up.
const PAGES_LOOKED_UP: usize = 512;
/// Nodes walked to warm up: few, since no cache holds the chain.
const WARM_NODES: u64 = 1 << 13;
/// The largest share of a node's free memory that is taken.
const SHARE_OF_FREE: f64 = 0.5;
/// The most nodes that are measured; longer runs measure more.
const MOST_NODES: ByEffort<usize> = ByEffort { quick: 4, normal: 8, thorough: 32 };

pub(crate) const ENTRY: Entry = Entry {
    name: "numa",
    about: "memory placed on this node, on others, on all: latency and parallelism",
    needs: Some("two NUMA nodes with memory"),
    seconds: ByEffort { quick: 2.5, normal: 14.0, thorough: 55.0 },
    run: |ctx, machine| machine.experiments.numa = Some(outcome_of(ctx, machine, run)),
    part: |all, name| Some(all.numa.as_ref()?.ending(name)),
};

fn run(ctx: &mut Context<'_>, _known: &Machine) -> Result<Numa, Refused> {
    let home = ctx.cpu() as u32;
    let nodes = nodes_with_memory(ctx.host);
    if nodes.len() < 2 {
        return Err(Refused::not_possible(
            "this host shows only one NUMA node",
            "a machine with several sockets or with sub-NUMA clusters (SNC, NPS), or a guest that is shown its host's \
             nodes; make test-numa tries the placements in an emulated one",
        ));
    }
    let Some(local) = ctx.host.node_of(home).map(|n| n.id) else {
        return Err(Refused::not_possible(
            format!("the kernel does not say on which node CPU {home} is"),
            "a kernel with CONFIG_NUMA, and /sys mounted",
        ));
    };
    let most = MOST_NODES.at(ctx.effort);
    let (nodes, mut left_out) = choose(ctx.host, &nodes, local, most);
    let size = size_of_each(ctx, &nodes);

    // Chains for all placements, kept until the end: those bound to one node serve the matrix too.
    let mut placed = Vec::new();
    for (i, plan) in plans(ctx, &nodes, local).into_iter().enumerate() {
        ctx.stage(0.02 * i as f64, 0.02 * (i as f64 + 1.0));
        if ctx.stop.asked() {
            break;
        }
        match PlacedChain::build(ctx, &plan, size) {
            Ok(done) => placed.push(done),
            Err(refused) => left_out.push(format!("{:?} on {:?}: {}", plan.kind, plan.nodes, refused.why)),
        }
    }

    ctx.stage(0.2, 0.6);
    let placements = placements(ctx, &placed)?;
    ctx.stage(0.6, 1.0);
    let matrix = if ctx.stop.asked() { Vec::new() } else { matrix(ctx, &placed)? };
    Ok(Numa { local, nodes, size, placements, matrix, left_out })
}

/// Nodes that have memory, and of which nothing says that we may not use it.
fn nodes_with_memory(host: &Host) -> Vec<u32> {
    host.nodes.iter().filter(|n| n.total.value().is_none_or(|t| t.0 > 0)).map(|n| n.id).collect()
}

/// At most `most` nodes, the local one among them; and why the others are left out.
fn choose(host: &Host, nodes: &[u32], local: u32, most: usize) -> (Vec<u32>, Vec<String>) {
    let mut nodes = nodes.to_vec();
    // Nodes with CPUs say more than those of memory only.
    nodes.sort_by_key(|&n| (n != local, host.nodes.iter().any(|x| x.id == n && x.cpus.is_empty()), n));
    let left = nodes.split_off(nodes.len().min(most));
    nodes.sort_unstable();
    let why = |n: u32| format!("node {n}: no time for more than {most} nodes; --thorough measures more");
    (nodes, left.into_iter().map(why).collect())
}

/// Several times the last cache, if all nodes have space for it and all placements together fit.
fn size_of_each(ctx: &Context<'_>, nodes: &[u32]) -> Bytes {
    let wanted = (ctx.last_cache().0 * ctx.pick(2, 4, 6)).clamp(32 << 20, 1 << 30);
    let free = ctx
        .host
        .nodes
        .iter()
        .filter(|n| nodes.contains(&n.id))
        .filter_map(|n| n.free.value())
        .map(|b| (b.0 as f64 * SHARE_OF_FREE) as u64)
        .min()
        .unwrap_or(u64::MAX);
    // One for each node, one interleaved, one left alone. They all may meet on one node in the
    // worst case.
    let placements = nodes.len() as u64 + 2;
    let most = (ctx.max_memory.0 / placements).min(free / 3);
    Bytes(wanted.min(most).max(4 << 20) / (2 << 20) * (2 << 20))
}

#[derive(Clone, Debug, PartialEq)]
struct PlacementPlan {
    kind: PlacementKind,
    nodes: Vec<u32>,
    placement: Placement,
}

fn plans(ctx: &mut Context<'_>, nodes: &[u32], local: u32) -> Vec<PlacementPlan> {
    let seed = ctx.rng.next_u64();
    plans_for(ctx.host, nodes, local, seed)
}

fn plans_for(host: &Host, nodes: &[u32], local: u32, seed: u64) -> Vec<PlacementPlan> {
    let mut plans: Vec<PlacementPlan> = nodes
        .iter()
        .map(|&n| PlacementPlan {
            kind: if n == local { PlacementKind::Local } else { PlacementKind::Remote },
            nodes: vec![n],
            placement: Placement::Bind(vec![n]),
        })
        .collect();
    plans.push(PlacementPlan {
        kind: PlacementKind::Interleaved,
        nodes: nodes.to_vec(),
        placement: Placement::Interleave(nodes.to_vec()),
    });
    let touching: Vec<(u32, u32)> = nodes.iter().filter_map(|&n| Some((n, cpu_on(host, n)?))).collect();
    plans.push(PlacementPlan {
        kind: PlacementKind::Off,
        nodes: touching.iter().map(|t| t.0).collect(),
        placement: Placement::TouchedBy { cpus: touching.iter().map(|t| t.1 as usize).collect(), seed },
    });
    plans
}

/// A CPU on a node that this process may use.
fn cpu_on(host: &Host, node: u32) -> Option<u32> {
    let node: &Node = host.nodes.iter().find(|n| n.id == node)?;
    host.usable_cpus().into_iter().find(|&c| node.cpus.contains(c))
}

/// Memory placed, with the chain in it.
struct PlacedChain {
    plan: PlacementPlan,
    chain: Chain,
    found: Vec<NodePages>,
    size: Bytes,
}

impl PlacedChain {
    fn build(ctx: &mut Context<'_>, plan: &PlacementPlan, size: Bytes) -> Result<Self, Refused> {
        let line = ctx.line();
        let layout = Layout::random(size, line);
        let chain = chain::build(&[layout], main_pages(ctx), &plan.placement, &mut ctx.rng)?.remove(0);
        let census = chain.arena().node_census(PAGES_LOOKED_UP)?;
        let found = census.into_iter().map(|(node, pages)| NodePages { node, pages }).collect();
        Ok(Self { plan: plan.clone(), chain, found, size })
    }
}

/// Every page on a node that was asked for, and on each of them a fair part of what it should get:
/// half at least.
fn as_asked(asked: &[u32], found: &[NodePages]) -> bool {
    let total: usize = found.iter().map(|f| f.pages).sum();
    let fair = total / asked.len().max(1);
    total > 0
        && found.iter().all(|f| f.pages == 0 || asked.iter().any(|&n| n as i32 == f.node))
        && asked.iter().all(|&n| found.iter().any(|f| f.node == n as i32 && f.pages * 2 >= fair))
}

fn placements(ctx: &mut Context<'_>, placed: &[PlacedChain]) -> Result<Vec<PlacementResult>, Refused> {
    let chase = load_chase(kernels::Access::Read)?;
    let parallel = Loaded::of(&Spec::ParallelChains { chains: PARALLEL_CHAINS })?;
    let mut rigs: Vec<Box<dyn Rig>> = Vec::new();
    for p in placed {
        let begin = ctx.rng.below(p.chain.nodes());
        rigs.push(Box::new(ChaseRig::new(chase.clone(), p.chain.clone(), WARM_NODES, 0).beginning_at(begin)));
        let nodes = NodeSupply::of(p.chain.clone());
        rigs.push(Box::new(SideBySideRig::new(parallel.clone(), nodes).per_step()));
    }
    let gathered = ctx.measure(rigs, block(ctx), ctx.pick(9, 31, 81), 0.3);
    let mut results = Vec::new();
    for (p, pair) in placed.iter().zip(gathered.series.chunks(2)) {
        let (latency, parallel) = (ctx.latency(&pair[0]), ctx.latency(&pair[1]));
        results.push(PlacementResult {
            kind: p.plan.kind,
            nodes: p.plan.nodes.clone(),
            found: p.found.clone(),
            as_asked: as_asked(&p.plan.nodes, &p.found),
            parallelism: crews::ratio(&latency.ticks, &parallel.ticks),
            latency,
            parallel,
            chains: PARALLEL_CHAINS,
            bursts: Vec::new(),
            effective: None,
        });
    }
    let share = 0.25 / placed.len().max(1) as f64;
    for (p, result) in placed.iter().zip(&mut results) {
        if ctx.stop.asked() {
            break;
        }
        let (bursts, effective) = mlp::bursts_on(ctx, &NodeSupply::of(p.chain.clone()), share)?;
        (result.bursts, result.effective) = (bursts, Some(effective));
    }
    Ok(results)
}

fn block(ctx: &Context<'_>) -> Duration {
    Duration::from_micros(ctx.pick(1000, 2000, 3000))
}

/// One CPU of each node, on the memory of each node.
fn matrix(ctx: &mut Context<'_>, placed: &[PlacedChain]) -> Result<Vec<NodePair>, Refused> {
    let bound: Vec<&PlacedChain> = placed
        .iter()
        .filter(|p| matches!(p.plan.kind, PlacementKind::Local | PlacementKind::Remote))
        .collect();
    let from: Vec<(u32, u32)> = bound
        .iter()
        .filter_map(|p| {
            let node = p.plan.nodes[0];
            // The measuring CPU stands for its own node.
            let cpu = if p.plan.kind == PlacementKind::Local {
                Some(ctx.cpu() as u32)
            } else {
                cpu_on(ctx.host, node)
            };
            Some((node, cpu?))
        })
        .collect();
    let cpus: Vec<u32> = from.iter().map(|f| f.1).collect();
    let crew = crews::crew(ctx, &cpus)?;
    let chase = load_chase(kernels::Access::Read)?;
    let read = Loaded::of(&Spec::Stream { op: StreamOp::Read, width: widest(), delay: 0 })?;
    // Streams have areas of their own: a chain is no row of ordinary numbers, though for sums that
    // would not matter, but its owner promises that nothing else runs over it.
    let mut areas = Vec::new();
    for p in &bound {
        let size = Bytes((p.size.0 / 2).max(2 << 20));
        areas.push(Arc::new(Arena::placed(size, main_pages(ctx), &p.plan.placement)?));
    }
    let mut asked = Vec::new();
    let mut rigs: Vec<Box<dyn Rig>> = Vec::new();
    for &(node, cpu) in &from {
        for (to, area) in bound.iter().zip(&areas) {
            asked.push((node, cpu, to.plan.nodes[0]));
            let begin = ctx.rng.below(to.chain.nodes());
            let chaser = ChaseRig::new(chase.clone(), to.chain.clone(), WARM_NODES, 0).beginning_at(begin);
            let reader = StreamRig::new(read.clone(), Region::new(area, 0, area.len()), 1 << 18);
            for member in [Box::new(chaser) as CrewMember, Box::new(reader)] {
                rigs.push(Box::new(CrewRig::new(&crew, vec![(cpu as usize, member)])));
            }
        }
    }
    let gathered = ctx.measure(rigs, block(ctx), ctx.pick(9, 31, 81), 0.3);
    let hertz = ctx.tsc.value;
    let mut pairs = Vec::new();
    for ((from, cpu, to), series) in asked.into_iter().zip(gathered.series.chunks(2)) {
        let rate = |b: &Block| 64.0 / CrewRig::ticks(b, 0) * hertz;
        pairs.push(NodePair {
            from,
            cpu,
            to,
            distance_claimed: distance(ctx.host, from, to),
            latency: crews::latency_of(ctx, &series[0], 0),
            read_rate: ctx.quantity(&series[1], Unit::BytesPerSecond, rate),
        });
    }
    Ok(pairs)
}

fn distance(host: &Host, from: u32, to: u32) -> Quantity {
    let column = host.nodes.iter().position(|n| n.id == to);
    let row = host.nodes.iter().find(|n| n.id == from).and_then(|n| n.distances.get());
    match (row, column) {
        (Some(row), Some(column)) if column < row.len() => {
            Quantity::claimed(f64::from(row[column]), Unit::Ratio)
        }
        _ => Quantity::unresolved("the kernel states no distance"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crews::tests::big_host;
    use records::host::{CpuList, Fact};

    #[test]
    fn every_placement_is_planned() {
        use PlacementKind::{Interleaved, Local, Off, Remote};
        let mut host = big_host();
        // A node of memory only.
        host.nodes.push(Node { id: 2, cpus: CpuList::default(), ..host.nodes[0].clone() });
        let nodes = nodes_with_memory(&host);
        assert_eq!(nodes, [0, 1, 2]);
        let plans = plans_for(&host, &nodes, 1, 7);
        let kinds: Vec<PlacementKind> = plans.iter().map(|p| p.kind).collect();
        assert_eq!(kinds, [Remote, Local, Remote, Interleaved, Off]);
        assert_eq!(plans[3].nodes, [0, 1, 2]);
        assert_eq!(plans[4].nodes, [0, 1], "no thread runs on a node without CPUs");
        assert_eq!(plans[4].placement, Placement::TouchedBy { cpus: vec![0, 4], seed: 7 });
    }

    #[test]
    fn nodes_without_memory_do_not_count() {
        let mut host = big_host();
        host.nodes[1].total = Fact::Known(Bytes(0));
        assert_eq!(nodes_with_memory(&host), [0]);
    }

    #[test]
    fn too_many_nodes_are_left_out_by_name() {
        let mut host = big_host();
        for id in 2..6 {
            host.nodes.push(Node { id, ..host.nodes[0].clone() });
        }
        let (chosen, left) = choose(&host, &[0, 1, 2, 3, 4, 5], 5, 4);
        assert_eq!(chosen, [0, 1, 2, 5]);
        assert!(left.len() == 2 && left[0].contains("node 3"), "{left:?}");
    }

    #[test]
    fn a_placement_is_believed_only_where_pages_lie_so() {
        let found = |pages: &[(i32, usize)]| {
            pages.iter().map(|&(node, pages)| NodePages { node, pages }).collect::<Vec<_>>()
        };
        assert!(as_asked(&[1], &found(&[(1, 512)])));
        assert!(!as_asked(&[1], &found(&[(0, 1), (1, 511)])));
        assert!(!as_asked(&[1], &found(&[])));
        assert!(as_asked(&[0, 1], &found(&[(0, 256), (1, 256)])));
        assert!(!as_asked(&[0, 1], &found(&[(0, 500), (1, 12)])));
        assert!(!as_asked(&[0, 1], &found(&[(-14, 3), (0, 255), (1, 254)])), "pages that are not there");
    }

    #[test]
    fn distances_are_read_from_row_and_column() {
        let host = big_host();
        assert_eq!(distance(&host, 0, 1).value(), Some(21.0));
        assert_eq!(distance(&host, 1, 1).value(), Some(10.0));
        assert!(distance(&host, 0, 9).value().is_none());
    }
}
