//! Chains of many shapes, measured one against the other: in batches that fit into memory, each
//! batch interleaved.

use crate::context::{Context, Refused};
use crate::latency;
use lab::arena::{PageKind, Placement};
use lab::chain::{self, Layout};
use lab::rigs::{ChaseRig, Rig};
use records::machine::PageSupply;
use std::time::Duration;
use units::{Bytes, Latency};

/// How much is measured of each chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChasePass {
    pub block: Duration,
    pub blocks: usize,
    /// Share of the experiment's budget, for all batches together.
    pub share: f64,
    /// The most memory that one batch takes.
    pub cap: Bytes,
}

/// What was measured on one chain.
#[derive(Clone, Debug)]
pub(crate) struct ChaseResult {
    pub latency: Latency,
    pub blocks: usize,
    pub voided: usize,
}

impl ChaseResult {
    pub(crate) fn of(ctx: &mut Context<'_>, series: &lab::campaign::Series) -> Self {
        Self { latency: ctx.latency(series), blocks: series.valid(), voided: series.voids().total() }
    }
}

/// Measures reads along chains of these layouts, in their order. If a stop is asked for, it ends
/// early with what it has.
pub(crate) fn chase(
    ctx: &mut Context<'_>,
    layouts: &[Layout],
    pages: PageKind,
    pass: ChasePass,
) -> Result<(Vec<ChaseResult>, PageSupply), Refused> {
    let (chased, supply) = chase_each(ctx, layouts, pages, pass, &|rig| vec![Box::new(rig)])?;
    Ok((chased.into_iter().flatten().collect(), supply))
}

/// The same, with several rigs for each chain.
pub(crate) fn chase_each(
    ctx: &mut Context<'_>,
    layouts: &[Layout],
    pages: PageKind,
    pass: ChasePass,
    rigs_of: &dyn Fn(ChaseRig) -> Vec<Box<dyn Rig>>,
) -> Result<(Vec<Vec<ChaseResult>>, PageSupply), Refused> {
    let kernel = latency::load_chase(kernels::Access::Read)?;
    let batches = batches(layouts, pass.cap);
    let (from, to) = ctx.stage;
    let mut chased = Vec::with_capacity(layouts.len());
    let mut supply: Option<PageSupply> = None;
    for (i, batch) in batches.iter().enumerate() {
        if ctx.stop.asked() {
            break;
        }
        let step = |n: usize| from + (to - from) * n as f64 / batches.len() as f64;
        ctx.stage(step(i), step(i + 1));
        let chains = chain::build(batch, pages, &Placement::FirstTouch, &mut ctx.rng)?;
        let here = latency::supply_of(&chains, pages);
        let each: Vec<_> = chains.iter().map(|chain| rigs_of(rig(ctx, &kernel, chain))).collect();
        let per_chain = each.first().map_or(1, Vec::len);
        let rigs = each.into_iter().flatten().collect();
        let share = pass.share * batch.len() as f64 / layouts.len() as f64;
        let gathered = ctx.measure(rigs, pass.block, pass.blocks, share);
        for series in gathered.series.chunks(per_chain) {
            chased.push(series.iter().map(|s| ChaseResult::of(ctx, s)).collect());
        }
        supply = Some(match supply {
            Some(s) if s.share < here.share => s,
            _ => here,
        });
    }
    ctx.stage = (from, to);
    let supply = supply.unwrap_or(PageSupply { asked: pages.name().to_owned(), share: 0.0 });
    Ok((chased, supply))
}

/// A rig that walks this chain, warmed as the latency experiment does it.
fn rig(ctx: &Context<'_>, kernel: &lab::code::Loaded, chain: &chain::Chain) -> ChaseRig {
    let warm_below = ctx.last_cache().0 * ctx.pick(1, 2, 3);
    let warm_ticks = (ctx.tsc.value * ctx.pick(0.01, 0.04, 0.2)) as u64;
    ChaseRig::new(kernel.clone(), chain.clone(), latency::warm_limit(chain, warm_below), warm_ticks)
}

/// Neighbours in the list stay together as far as memory allows, since neighbours are compared.
fn batches(layouts: &[Layout], cap: Bytes) -> Vec<Vec<Layout>> {
    let mut batches: Vec<Vec<Layout>> = Vec::new();
    for layout in layouts {
        match batches.last_mut() {
            Some(batch) => {
                batch.push(layout.clone());
                if chain::arena_size(batch) > cap && batch.len() > 1 {
                    let last = batch.pop().into_iter().collect();
                    batches.push(last);
                }
            }
            None => batches.push(vec![layout.clone()]),
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_keep_all_in_order_and_below_the_cap() {
        let layouts: Vec<Layout> = (1..60).map(|i| Layout::random(Bytes(i << 16), 64)).collect();
        let cap = Bytes(8 << 20);
        let batches = batches(&layouts, cap);
        assert!(batches.len() > 1);
        assert!(batches.iter().all(|b| chain::arena_size(b) <= cap));
        assert_eq!(batches.concat(), layouts);
        assert!(super::batches(&[], cap).is_empty());
    }
}
