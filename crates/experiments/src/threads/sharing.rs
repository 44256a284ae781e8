//! Which caches does a CPU share with which others? What one of them does in a cache tells.
//!
//! A private cache is believed to be as large as claimed: one CPU's chain fills more than half of it, another's chain of
//! the same size fills more than half again, and both suffer if it is the same cache. Of a last cache, who knows how
//! much of it we get: so a chain of a modest part of it runs beside a stream through memory, which pushes everything
//! else out of the cache that it passes. What each is compared with is the same pair with the other one in a few lines.

use super::{Stock, block, chaser, last_cache_part, pages};
use crate::context::{Context, Refused};
use crate::crews::{self, Claimed};
use kernels::{Spec, StreamOp};
use lab::arena::{Arena, Placement};
use lab::code::Loaded;
use lab::crew::{Crew, CrewMember, CrewRig};
use lab::rigs::{Region, Rig, StreamRig, widest};
use records::host::Host;
use records::machine::{Nearness, Sharing};
use std::cell::RefCell;
use std::sync::Arc;
use units::{Bytes, Estimate, Unit};

/// Part of a private cache that a chain fills: one fits, two do not.
const MORE_THAN_HALF: f64 = 0.6;
/// A few lines, which push out nobody.
const TINY: u64 = 1 << 10;
/// A stream over so little stays in its first-level cache.
const TINY_STREAM: usize = 8 << 10;
/// Slow-downs above and below these settle whether a cache is shared: the next level costs twice as much or more, and
/// most loads fall into it if two chains meet in one cache.
const SHARED_FROM: f64 = 1.25;
const ALONE_BELOW: f64 = 1.15;
/// A chain must go round several times in a block, so that it feels what was pushed out the round before.
const LONGER: u32 = 3;

/// For each of the first CPU's caches and some other CPUs: is it theirs too?
pub(super) fn run(
    ctx: &mut Context<'_>,
    crew: &RefCell<Crew>,
    kernel: &Loaded,
    order: &[u32],
) -> Result<Vec<Sharing>, Refused> {
    let home = order[0];
    let others = partners(ctx.host, order, ctx.pick(1, 2, 4));
    let caches = crews::caches(ctx.host, home);
    let sizes = sizes(&caches, ctx.line());
    let mut with_tiny = vec![Bytes(TINY)];
    with_tiny.extend(&sizes);
    let mine = Stock::build(ctx, home, &sizes)?;
    let stream = Spec::Stream { op: StreamOp::Read, width: widest(), delay: 0 };
    let stream = Loaded::new(kernels::assemble(&stream)?)?;
    let (mut stocks, mut areas) = (Vec::new(), Vec::new());
    for &other in &others {
        stocks.push(Stock::build(ctx, other, &with_tiny)?);
        areas.push(area(ctx, other)?);
    }
    let mut asked = Vec::new();
    let mut rigs: Vec<Box<dyn Rig>> = Vec::new();
    for (level, (cache, &size)) in caches.iter().zip(&sizes).enumerate() {
        for ((&other, stock), area) in others.iter().zip(&stocks).zip(&areas) {
            asked.push((cache, size, other));
            for loud in [true, false] {
                let partner = if level > 0 && level + 1 == caches.len() {
                    let len = if loud { area.len() } else { TINY_STREAM };
                    let rig = StreamRig::new(stream.clone(), Region::new(area, 0, len), TINY_STREAM);
                    (other as usize, Box::new(rig) as CrewMember)
                } else {
                    let chain = stock.of(if loud { size } else { Bytes(TINY) });
                    chaser(ctx, other, kernel, chain)
                };
                let members = vec![chaser(ctx, home, kernel, mine.of(size)), partner];
                rigs.push(Box::new(CrewRig::new(crew, members)));
            }
        }
    }
    let gathered = ctx.measure(rigs, block(ctx) * LONGER, ctx.pick(9, 15, 25), 0.4);
    let mut found = Vec::new();
    for ((cache, size, other), pair) in asked.into_iter().zip(gathered.series.chunks(2)) {
        let beside = |ctx: &mut Context<'_>, i: usize| {
            ctx.quantity(&pair[i], Unit::Cycles, |b| CrewRig::ticks(b, 0) * CrewRig::pace(b, 0))
        };
        let (crowded, quiet) = (beside(ctx, 0), beside(ctx, 1));
        let slowdown = crews::ratio(&crowded, &quiet);
        found.push(Sharing {
            level: cache.name.clone(),
            cpus: [home, other],
            nearness: crews::nearness(ctx.host, home, other),
            size,
            shared: slowdown.estimate().and_then(is_shared),
            slowdown,
            claimed: Some(cache.shared_by.contains(other)),
        });
    }
    Ok(found)
}

/// How large the first CPU's chain is in each of its caches.
fn sizes(caches: &[Claimed], line: u64) -> Vec<Bytes> {
    let more_than_half = |c: &Claimed| (c.size.0 as f64 * MORE_THAN_HALF) as u64 / line * line;
    let mut sizes: Vec<Bytes> = caches.iter().map(|c| Bytes(more_than_half(c))).collect();
    if let (Some(part), [_, .., last]) = (last_cache_part(caches), &mut sizes[..]) {
        *last = part;
    }
    sizes
}

/// Memory that no cache holds, for a stream.
fn area(ctx: &Context<'_>, cpu: u32) -> Result<Arc<Arena>, Refused> {
    let size = Bytes((ctx.last_cache().0 * 2).clamp(8 << 20, ctx.max_memory.0.max(8 << 20)));
    let placement =
        crews::node_to_bind(ctx.host, cpu).map_or(Placement::FirstTouch, |n| Placement::Bind(vec![n]));
    Ok(Arc::new(Arena::placed(size, pages(ctx), &placement)?))
}

/// What a slow-down says.
fn is_shared(slowdown: Estimate) -> Option<bool> {
    if slowdown.lo > SHARED_FROM {
        Some(true)
    } else if slowdown.hi < ALONE_BELOW {
        Some(false)
    } else {
        None
    }
}

/// Some CPUs of each nearness to the first one.
fn partners(host: &Host, order: &[u32], of_each: usize) -> Vec<u32> {
    let mut taken: Vec<(Nearness, u32)> = Vec::new();
    for &cpu in &order[1..] {
        let near = crews::nearness(host, order[0], cpu);
        if taken.iter().filter(|t| t.0 == near).count() < of_each {
            taken.push((near, cpu));
        }
    }
    taken.into_iter().map(|t| t.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crews::tests::big_host;

    #[test]
    fn partners_of_each_kind() {
        let host = big_host();
        let order = crews::joining_order(&host, 0);
        let partners = partners(&host, &order, 1);
        let kinds: Vec<Nearness> = partners.iter().map(|&p| crews::nearness(&host, 0, p)).collect();
        assert_eq!(kinds.len(), 4);
        assert!(kinds.contains(&Nearness::SameCore) && kinds.contains(&Nearness::OtherPackage));
    }

    #[test]
    fn slowdowns_settle_or_do_not() {
        assert_eq!(is_shared(Estimate::new(2.0, 1.8, 2.2)), Some(true));
        assert_eq!(is_shared(Estimate::new(1.0, 0.99, 1.02)), Some(false));
        assert_eq!(is_shared(Estimate::new(1.07, 1.0, 1.2)), None);
    }

    #[test]
    fn chains_in_private_caches_fill_more_than_half_and_in_the_last_a_part() {
        let sizes = sizes(&crews::caches(&big_host(), 0), 64);
        assert_eq!(sizes.len(), 3);
        assert!(sizes[0].0 > 16 << 10 && sizes[0].0 < 32 << 10, "{sizes:?}");
        assert!(sizes[1].0 > 512 << 10 && sizes[1].0 < 1 << 20, "{sizes:?}");
        assert_eq!(sizes[2], Bytes::mib(4));
        assert!(super::sizes(&[], 64).is_empty());
    }
}
