//! Which caches does a CPU share with which others? What one of them does in a cache tells.
//!
//! A private cache is taken to be as large as claimed: one CPU's chain fills more than half of it,
//! another's chain of the same size fills more than half again, and both suffer if it is the same
//! cache. How much of a last cache this machine gets is not known, and some last caches protect
//! themselves well against being overrun. So there the other CPU writes to a chain that fills a
//! modest part of it, and then the first one reads that chain: if the cache is the same, most of it
//! is there. Each is compared with a chain of the first CPU's own, while the other one keeps to a
//! few lines.

use super::{ThreadChains, block, chaser, last_cache_part, warmth};
use crate::context::{Context, Refused};
use crate::crews::{self, ClaimedCache};
use crate::latency::load_chase;
use lab::campaign::Block;
use lab::chain::Chain;
use lab::code::Loaded;
use lab::crew::{Crew, CrewMember, CrewRig};
use lab::rigs::{AfterWarmingRig, ChaseRig, Rig};
use records::host::Host;
use records::machine::{Nearness, Sharing, SharingTest};
use std::cell::RefCell;
use std::time::Duration;
use units::{Bytes, Estimate, Unit};

/// Part of a private cache that a chain fills: one fits, two do not.
const MORE_THAN_HALF: f64 = 0.6;
/// A few lines, which push out nothing.
const TINY_BYTES: u64 = 1 << 10;
/// Slow-downs above and below these say that two chains meet in one cache, or do not: the next
/// level costs twice as much or more.
const MET_FROM: f64 = 1.25;
const APART_BELOW: f64 = 1.15;
/// Lines from another cache cost several times as much as those from one's own last one, and those
/// that the other CPU still has in its private caches are but a part.
const NEAR_BELOW: f64 = 2.5;
const FAR_FROM: f64 = 3.5;
/// Of what another CPU wrote, only the first reading counts: a block must end before the chain
/// does.
const FIRST_READING: Duration = Duration::from_micros(200);

/// For each of the first CPU's caches and some other CPUs: is it theirs too?
pub(super) fn run(
    ctx: &mut Context<'_>,
    crew: &RefCell<Crew>,
    kernel: &Loaded,
    order: &[u32],
) -> Result<(Vec<Sharing>, Vec<String>), Refused> {
    let home = order[0];
    let others = partners(ctx.host, order, ctx.pick(1, 2, 4));
    let caches = crews::caches(ctx.host, home);
    let sizes = sizes(&caches, ctx.line());
    let mine = ThreadChains::build(ctx, home, &sizes)?;
    let write = load_chase(kernels::Access::ReadModifyWrite)?;
    let mut with_tiny = vec![Bytes(TINY_BYTES)];
    with_tiny.extend(&sizes);
    let mut theirs = Vec::new();
    for &other in &others {
        theirs.push(ThreadChains::build(ctx, other, &with_tiny)?);
    }
    let (mut sharing, mut notes) = (Vec::new(), Vec::new());
    // Blocks of the two tests differ in length.
    for test in [SharingTest::PushedOut, SharingTest::HandedOn] {
        let mut asked = Vec::new();
        let mut rigs: Vec<Box<dyn Rig>> = Vec::new();
        for (level, (cache, &size)) in caches.iter().zip(&sizes).enumerate() {
            if test_of(level, caches.len()) != test {
                continue;
            }
            for (&other, stock) in others.iter().zip(&theirs) {
                asked.push((cache, size, other));
                let quiet = vec![
                    chaser(ctx, home, kernel, mine.of(size)),
                    chaser(ctx, other, kernel, stock.of(Bytes(TINY_BYTES))),
                ];
                let loud = match test {
                    SharingTest::PushedOut => vec![
                        chaser(ctx, home, kernel, mine.of(size)),
                        chaser(ctx, other, kernel, stock.of(size)),
                    ],
                    SharingTest::HandedOn => vec![
                        reader(home, kernel, stock.of(size)),
                        writer(ctx, other, &write, kernel, stock, size),
                    ],
                };
                rigs.push(Box::new(CrewRig::new(crew, loud)));
                rigs.push(Box::new(CrewRig::new(crew, quiet)));
            }
        }
        let length = if test == SharingTest::HandedOn { FIRST_READING } else { block(ctx) };
        let gathered = ctx.measure(rigs, length, ctx.pick(11, 41, 121), 0.2);
        for ((cache, size, other), pair) in asked.into_iter().zip(gathered.series.chunks(2)) {
            let cycles = |b: &Block| CrewRig::ticks(b, 0) * CrewRig::cycles_per_tick(b, 0);
            let (loud, modes) = crews::wherever(ctx, &pair[0], Unit::Cycles, cycles);
            let quiet = ctx.quantity(&pair[1], Unit::Cycles, cycles);
            if test == SharingTest::HandedOn {
                let what = format!("lines that CPU {other} wrote and CPU {home} reads");
                notes.extend(modes.map(|m| crews::moved(&what, m, "cycles")));
            }
            let ratio = crews::ratio(&loud, &quiet);
            sharing.push(Sharing {
                level: cache.name.clone(),
                cpus: [home, other],
                nearness: crews::nearness(ctx.host, home, other),
                test,
                size,
                shared: ratio.estimate().and_then(|r| is_shared(test, r)),
                ratio,
                claimed: cache.shared_by.as_ref().map(|cpus| cpus.contains(other)),
            });
        }
    }
    Ok((sharing, notes))
}

fn test_of(level: usize, levels: usize) -> SharingTest {
    if level > 0 && level + 1 == levels { SharingTest::HandedOn } else { SharingTest::PushedOut }
}

/// Reads without having read before.
fn reader(cpu: u32, kernel: &Loaded, chain: &Chain) -> (usize, CrewMember) {
    (cpu as usize, Box::new(ChaseRig::new(kernel.clone(), chain.clone(), 0, 0)))
}

/// Writes to every line before the block, so that no other CPU has it, and then keeps to a few
/// lines.
fn writer(
    ctx: &mut Context<'_>,
    cpu: u32,
    write: &Loaded,
    read: &Loaded,
    stock: &ThreadChains,
    size: Bytes,
) -> (usize, CrewMember) {
    let chain = stock.of(size);
    let writes = ChaseRig::new(write.clone(), chain.clone(), chain.nodes(), warmth(ctx));
    let (_, waits) = chaser(ctx, cpu, read, stock.of(Bytes(TINY_BYTES)));
    (cpu as usize, Box::new(AfterWarmingRig::new(Box::new(writes), waits)))
}

/// How large the first CPU's chain is in each of its caches.
fn sizes(caches: &[ClaimedCache], line: u64) -> Vec<Bytes> {
    let more_than_half = |c: &ClaimedCache| (c.size.0 as f64 * MORE_THAN_HALF) as u64 / line * line;
    let mut sizes: Vec<Bytes> = caches.iter().map(|c| Bytes(more_than_half(c))).collect();
    if let (Some(part), [_, .., last]) = (last_cache_part(caches), &mut sizes[..]) {
        *last = part;
    }
    sizes
}

/// What a ratio says.
fn is_shared(test: SharingTest, ratio: Estimate) -> Option<bool> {
    let (low, high) = match test {
        SharingTest::PushedOut => (APART_BELOW, MET_FROM),
        SharingTest::HandedOn => (NEAR_BELOW, FAR_FROM),
    };
    let slower = if ratio.lo > high {
        true
    } else if ratio.hi < low {
        false
    } else {
        return None;
    };
    Some(slower == (test == SharingTest::PushedOut))
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
    fn ratios_settle_or_do_not() {
        use SharingTest::{HandedOn, PushedOut};
        assert_eq!(is_shared(PushedOut, Estimate::new(2.0, 1.8, 2.2)), Some(true));
        assert_eq!(is_shared(PushedOut, Estimate::new(1.0, 0.99, 1.02)), Some(false));
        assert_eq!(is_shared(PushedOut, Estimate::new(1.2, 1.0, 1.3)), None);
        assert_eq!(is_shared(HandedOn, Estimate::new(1.4, 1.2, 1.7)), Some(true));
        assert_eq!(is_shared(HandedOn, Estimate::new(7.0, 6.0, 8.0)), Some(false));
        assert_eq!(is_shared(HandedOn, Estimate::new(3.0, 2.0, 4.0)), None);
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
