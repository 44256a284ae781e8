//! Bursts over the size of the area: from hits in the first cache to misses of them all.
//!
//! An area is walked before each block, so that its lines lie as near as they fit; one that is too
//! large for that is measured as the blocks before have left it, which is in memory. Published is
//! one line for each number of accesses, from 1 KiB to 1 GiB in powers of two; accesses are drawn
//! at random. The table of a shot's addresses lies in the first cache, too, and takes a part of it.

use super::shots::NOP;
use crate::context::{Context, Refused};
use crate::latency::load_chase;
use kernels::{Fence, Spec};
use lab::arena::{PageKind, Placement};
use lab::chain::{self, Layout};
use lab::code::Loaded;
use lab::rigs::{AfterWarmingRig, ChaseRig, NodeSupply, Rig, ShotRig};
use records::machine::{AreaBursts, Effort, Shot};
use std::time::Duration;
use units::Bytes;

const SMALLEST: u64 = 1 << 10;
/// The published end; only thorough runs go beyond what no cache holds.
const LARGEST: u64 = 1 << 30;

/// A walk that warms up no more than the kernel.
const FEW_NODES: u64 = 1 << 10;

/// Powers of two, every second one in quick runs; the last is at most `largest`.
fn areas(effort: Effort, largest: u64) -> Vec<Bytes> {
    let step = if effort == Effort::Quick { 2 } else { 1 };
    (0..64).step_by(step).map(|i| SMALLEST << i).take_while(|&area| area <= largest).map(Bytes).collect()
}

/// The numbers of accesses.
fn accesses(effort: Effort) -> Vec<u32> {
    if effort == Effort::Quick { vec![1, 6, 11] } else { (1..=11).collect() }
}

pub(super) fn measured(
    ctx: &mut Context<'_>,
    pages: PageKind,
    uncached: Bytes,
    share: f64,
) -> Result<Vec<AreaBursts>, Refused> {
    let largest = ctx.pick(uncached.0, uncached.0, LARGEST.min(ctx.max_memory.0).max(uncached.0));
    let areas = areas(ctx.effort, largest);
    let layouts: Vec<Layout> = areas.iter().map(|&area| Layout::random(area, ctx.line())).collect();
    let chains = chain::build(&layouts, pages, &Placement::FirstTouch, &mut ctx.rng)?;
    let chase = load_chase(kernels::Access::Read)?;
    let warm_ticks = (ctx.tsc.value * ctx.pick(0.01, 0.03, 0.1)) as u64;
    let numbers = accesses(ctx.effort);
    let mut rigs: Vec<Box<dyn Rig>> = Vec::new();
    for chain in &chains {
        let whole = chain.nodes() <= ctx.pick(1 << 18, 1 << 19, 1 << 22);
        let limit = if whole { chain.nodes() } else { FEW_NODES };
        let supply = NodeSupply::of(chain.clone());
        for &accesses in &numbers {
            let burst = Spec::Burst { accesses, gap: 1, filler: NOP, fence: Fence::Lfence };
            let shots = ShotRig::new(Loaded::of(&burst)?, supply.clone());
            // Half a lap away from where shots begin, or a short walk would fetch their lines.
            let walk = ChaseRig::new(chase.clone(), chain.clone(), limit, warm_ticks)
                .beginning_at(chain.nodes() / 2);
            rigs.push(Box::new(AfterWarmingRig::new(Box::new(walk), Box::new(shots))));
        }
    }
    let (block, blocks) = ctx.pick((300, 7), (400, 11), (500, 41));
    let gathered = ctx.measure_on_whole_core(rigs, Duration::from_micros(block), blocks, share);
    let mut series = gathered.series.iter();
    let mut found = Vec::new();
    for area in areas {
        let bursts = numbers
            .iter()
            .zip(series.by_ref())
            .map(|(&accesses, series)| Shot { accesses, time: ctx.latency(series) })
            .collect();
        found.push(AreaBursts { area, bursts });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_the_published_ones() {
        let all = areas(Effort::Thorough, LARGEST);
        assert_eq!((all.len(), all[0], all[20]), (21, Bytes::kib(1), Bytes::gib(1)));
        assert_eq!(areas(Effort::Normal, 100 << 20).last(), Some(&Bytes::mib(64)));
        assert!(areas(Effort::Quick, LARGEST).len() < 12 && accesses(Effort::Quick).len() == 3);
        assert_eq!(accesses(Effort::Normal).len(), 11);
    }
}
