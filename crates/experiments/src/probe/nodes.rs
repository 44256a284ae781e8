//! NUMA nodes, each used by its own CPUs: a slow DIMM is on one of them.

use crate::context::{Context, Refused};
use crate::crews;
use crate::latency::{load_chase, main_pages};
use lab::arena::Placement;
use lab::campaign::Series;
use lab::chain::{self, Chain, Layout};
use lab::crew::CrewMember;
use lab::rigs::ChaseRig;
use records::machine::ProbedNode;
use units::{Bytes, Estimate, Quantity, Unit};

/// More nodes than this have no time.
const MOST_NODES: usize = 8;
const WARM_NODES: u64 = 1 << 13;

/// A node that is probed.
pub(super) struct NodePlan {
    node: u32,
    pub(super) cpus: Vec<u32>,
    chain: Chain,
}

impl NodePlan {
    /// Its first CPU, with a chain in its memory.
    pub(super) fn chaser(&self, ctx: &mut Context<'_>) -> Result<(usize, CrewMember), Refused> {
        let rig = ChaseRig::new(load_chase(kernels::Access::Read)?, self.chain.clone(), WARM_NODES, 0);
        let begin = ctx.rng.below(self.chain.nodes());
        Ok((self.cpus[0] as usize, Box::new(rig.beginning_at(begin))))
    }
}

/// The nodes with CPUs of ours and memory; none where there is only one.
pub(super) fn plans(ctx: &mut Context<'_>, order: &[u32]) -> Result<Vec<NodePlan>, Refused> {
    let mut by_node: Vec<(u32, Vec<u32>)> = Vec::new();
    for &cpu in order {
        let Some(node) = crews::node_to_bind(ctx.host, cpu) else { continue };
        match by_node.iter_mut().find(|(known, _)| *known == node) {
            Some((_, cpus)) => cpus.push(cpu),
            None => by_node.push((node, vec![cpu])),
        }
    }
    if by_node.len() < 2 {
        return Ok(Vec::new());
    }
    by_node.sort_unstable_by_key(|(node, _)| *node);
    by_node.truncate(MOST_NODES);
    let most = ctx.max_memory.0 / 4 / by_node.len() as u64;
    let span = (ctx.last_cache().0 * 2).clamp(32 << 20, 128 << 20).min(most).max(1 << 20);
    let line = ctx.line();
    let mut plans = Vec::new();
    for (node, cpus) in by_node {
        let layout = [Layout::random(Bytes(span / line * line), line)];
        let built = chain::build(&layout, main_pages(ctx), &Placement::Bind(vec![node]), &mut ctx.rng)?;
        plans.extend(built.into_iter().next().map(|chain| NodePlan { node, cpus, chain }));
    }
    Ok(plans)
}

/// Two series for each plan: its stream, and its chase.
pub(super) fn probed(ctx: &mut Context<'_>, plans: &[NodePlan], series: &[Series]) -> Vec<ProbedNode> {
    let node = |(plan, pair): (&NodePlan, &[Series])| ProbedNode {
        node: plan.node,
        threads: plan.cpus.len() as u32,
        bandwidth: super::figures::rate(ctx, &pair[0], plan.cpus.len(), 64),
        latency: crews::latency_of(ctx, &pair[1], 0),
    };
    plans.iter().zip(series.chunks(2)).map(node).collect()
}

/// The lowest of the nodes' bandwidths over the highest.
pub(super) fn balance(nodes: &[ProbedNode]) -> Quantity {
    let rates: Vec<Estimate> = nodes.iter().filter_map(|node| node.bandwidth.estimate()).collect();
    let lowest = rates.iter().min_by(|a, b| a.value.total_cmp(&b.value));
    let highest = rates.iter().max_by(|a, b| a.value.total_cmp(&b.value));
    match (lowest, highest) {
        (Some(lowest), Some(highest)) if nodes.len() > 1 && rates.len() == nodes.len() => {
            Quantity::measured(lowest.over(*highest), Unit::Ratio)
        }
        _ if nodes.len() < 2 => Quantity::unresolved("this host shows only one NUMA node"),
        _ => Quantity::unresolved("the bandwidth of a node was not resolved"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Latency;

    fn node(node: u32, rate: Option<f64>) -> ProbedNode {
        let bandwidth = rate.map_or_else(
            || Quantity::unresolved("void"),
            |rate| Quantity::measured(Estimate::new(rate, rate * 0.99, rate * 1.01), Unit::BytesPerSecond),
        );
        ProbedNode { node, threads: 4, latency: Latency::unresolved("not here"), bandwidth }
    }

    #[test]
    fn a_slow_node_tips_the_balance() {
        let nodes = [node(0, Some(200e9)), node(1, Some(150e9)), node(2, Some(190e9))];
        let found = balance(&nodes).estimate().unwrap();
        assert!((found.value - 0.75).abs() < 1e-9 && found.lo < 0.75 && found.hi > 0.75, "{found:?}");
        assert!(balance(&nodes[..1]).value().is_none());
        assert!(balance(&[node(0, Some(1.0)), node(1, None)]).value().is_none());
    }
}
