//! **c2c**: from one core's cache to another's.
//!
//! A line is handed to and fro between two CPUs, each writing it in turn; the figure is half a
//! round trip, for either side having the first turn. On machines of several nodes the line is at
//! home on the node of either CPU: what keeps track of its owner is there. All pairs are measured
//! where time allows, else some of every kind of neighbourhood. Then false sharing: two CPUs count,
//! each in a word of its own, on one line or on lines far apart, by plain and by atomic additions.

mod home;
mod sample;

use crate::context::{Context, Refused};
use crate::crews;
use crate::effort::ByEffort;
use crate::entry::{Entry, outcome_of};
use kernels::Spec;
use lab::code::Loaded;
use lab::crew::{Crew, CrewMember, CrewRig};
use lab::rigs::{CountRig, PingPongRig, Rig, Words};
use records::machine::{CacheToCache, FalseSharing, Machine, Nearness, Transfer, TransferClass};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use units::{Quantity, Unit};

/// A block of a hand-over, with what it takes to start and end one.
const BLOCK: Duration = Duration::from_micros(700);
const BLOCK_WITH_COSTS: Duration = Duration::from_micros(1200);

/// Hand-overs depend on the line's address, and each block takes another line: so there are many
/// blocks.
const LEAST_BLOCKS: usize = 32;
const MOST_BLOCKS: usize = 256;

pub(crate) const ENTRY: Entry = Entry {
    name: "c2c",
    about: "handing a cache line to another CPU, and the price of false sharing",
    needs: Some("two CPUs, whose time stamp counters agree"),
    seconds: ByEffort { quick: 2.0, normal: 8.0, thorough: 30.0 },
    run: |ctx, machine| machine.experiments.c2c = Some(outcome_of(ctx, machine, run)),
    part: |all, name| Some(all.c2c.as_ref()?.ending(name)),
};

fn run(ctx: &mut Context<'_>, known: &Machine) -> Result<CacheToCache, Refused> {
    let cpus = crews::joining_order(ctx.host, ctx.cpu() as u32);
    if cpus.len() < 2 {
        return Err(Refused::not_possible(
            "only one CPU may be used",
            "more CPUs: see taskset, and the cpuset of the control group",
        ));
    }
    let classes = sample::classes(ctx.host, &cpus);
    let time = ctx.budget.as_secs_f64() * 0.6;
    let several_nodes = home::several_nodes(ctx.host);
    // Each pair twice at most, by the line's home.
    let tries = (time / BLOCK_WITH_COSTS.as_secs_f64()) as usize / if several_nodes { 2 } else { 1 };
    let drawn = sample::draw(&classes, tries / LEAST_BLOCKS, &mut ctx.rng);
    let blocks = (tries / drawn.len().max(1)).clamp(LEAST_BLOCKS, MOST_BLOCKS);
    // A thread each for those CPUs only that take part.
    let taking_part: Vec<u32> = cpus
        .iter()
        .copied()
        .filter(|c| drawn.iter().any(|(_, (a, b))| a == c || b == c) || *c == cpus[0])
        .collect();
    let partners = partners(&drawn, cpus[0]);
    let crew = crews::crew(ctx, &taking_part)?;

    ctx.stage(0.0, 0.7);
    let mut rigs: Vec<Box<dyn Rig>> = Vec::new();
    let mut handed = Vec::new();
    for &(nearness, (from, to)) in &drawn {
        for placement in home::placements(ctx.host, from, to) {
            let (even, odd) = PingPongRig::pair(&placement)?;
            let home = even.home().filter(|_| several_nodes);
            handed.push((nearness, (from, to), home));
            let members: Vec<(usize, CrewMember)> =
                vec![(from as usize, Box::new(even)), (to as usize, Box::new(odd))];
            rigs.push(Box::new(CrewRig::new(&crew, members)));
        }
    }
    let gathered = ctx.measure(rigs, BLOCK, blocks, 0.7);
    let (mut pairs, mut notes) = (Vec::new(), Vec::new());
    for (&(nearness, (from, to), home), series) in handed.iter().zip(&gathered.series) {
        let (latency, modes) = crews::latency_wherever(
            ctx,
            series,
            |b| CrewRig::ticks(b, 0),
            |b| CrewRig::cycles_per_tick(b, 0),
        );
        notes.extend(modes.map(|m| crews::moved(&format!("CPU {from} to {to}"), m, "ns")));
        pairs.push(Transfer { from, to, nearness, home, latency });
    }

    ctx.stage(0.7, 1.0);
    let false_sharing =
        if ctx.stop.asked() { Vec::new() } else { false_sharing(ctx, &crew, cpus[0], &partners, blocks)? };
    let pairs_possible = classes.values().map(Vec::len).sum();
    notes.extend(doubts(&pairs, last_cache_ns(known)));
    let classes = summed(&classes, &pairs);
    Ok(CacheToCache { cpus: taking_part, pairs_possible, pairs, classes, false_sharing, notes })
}

/// A hand-over inside one last-level cache costs two or three times a load from it.
const TOO_FAR: f64 = 6.0;

/// What a load from the last-level cache costs, if the experiment on threads found out.
fn last_cache_ns(known: &Machine) -> Option<f64> {
    let threads = known.experiments.threads.as_ref()?.result.as_ref()?;
    let cached = threads.crowds.iter().filter(|c| c.threads == 1 && c.within != "DRAM");
    cached.max_by_key(|c| c.size)?.latency.ns.value()
}

/// Pairs that are too far apart for the cache that they are said to share.
fn doubts(pairs: &[Transfer], last_cache_ns: Option<f64>) -> Vec<String> {
    let Some(near) = last_cache_ns else { return Vec::new() };
    let together = |p: &&Transfer| matches!(p.nearness, Nearness::SameCore | Nearness::SameLastCache);
    pairs
        .iter()
        .filter(together)
        .filter_map(|p| Some((p, p.latency.ns.estimate()?)))
        .filter(|(_, ns)| ns.lo > near * TOO_FAR)
        .map(|(p, ns)| {
            format!(
                "CPU {} to {}: {:.0} ns is too much for a common last-level cache ({near:.0} ns a load), which the host \
                 claims: virtual CPUs may be anywhere, and may move",
                p.from, p.to, ns.value
            )
        })
        .collect()
}

/// One CPU of each nearness to the measuring one, of those that take part.
fn partners(drawn: &[(Nearness, (u32, u32))], home: u32) -> Vec<(Nearness, u32)> {
    let mut found: BTreeMap<Nearness, u32> = BTreeMap::new();
    for &(nearness, (a, b)) in drawn {
        if a == home {
            found.entry(nearness).or_insert(b);
        }
        if b == home {
            found.entry(nearness).or_insert(a);
        }
    }
    found.into_iter().collect()
}

fn summed(classes: &BTreeMap<Nearness, Vec<(u32, u32)>>, pairs: &[Transfer]) -> Vec<TransferClass> {
    classes
        .iter()
        .map(|(&nearness, possible)| {
            let of_class = pairs.iter().filter(|p| p.nearness == nearness);
            let measured: BTreeSet<(u32, u32)> = of_class.map(|p| (p.from, p.to)).collect();
            let ns: Vec<Quantity> =
                pairs.iter().filter(|p| p.nearness == nearness).map(|p| p.latency.ns.clone()).collect();
            TransferClass {
                nearness,
                pairs_possible: possible.len(),
                pairs_measured: measured.len(),
                ns: crews::pooled(&ns, Unit::Nanos),
            }
        })
        .collect()
}

fn false_sharing(
    ctx: &mut Context<'_>,
    crew: &RefCell<Crew>,
    home: u32,
    partners: &[(Nearness, u32)],
    blocks: usize,
) -> Result<Vec<FalseSharing>, Refused> {
    let mut asked = Vec::new();
    let mut rigs: Vec<Box<dyn Rig>> = Vec::new();
    for &(nearness, other) in partners {
        for locked in [false, true] {
            asked.push((nearness, other, locked));
            let kernel = Loaded::of(&Spec::Bump { locked })?;
            let words = Words::new(2);
            for together in [false, true] {
                let counter =
                    |i| Box::new(CountRig::new(kernel.clone(), words.clone(), i, together)) as CrewMember;
                let members = vec![(home as usize, counter(0)), (other as usize, counter(1))];
                rigs.push(Box::new(CrewRig::new(crew, members)));
            }
        }
    }
    let gathered = ctx.measure(rigs, BLOCK, blocks, 0.3);
    let mut found = Vec::new();
    for ((nearness, other, locked), pair) in asked.into_iter().zip(gathered.series.chunks(2)) {
        let apart = crews::median_latency(ctx, &pair[0], 2);
        let together = crews::median_latency(ctx, &pair[1], 2);
        let price = crews::ratio(&together.ns, &apart.ns);
        found.push(FalseSharing { cpus: [home, other], nearness, locked, apart, together, price });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Estimate, Latency};

    #[test]
    fn classes_tell_how_much_of_them_was_measured() {
        let ns = |value: f64| Quantity::measured(Estimate::new(value, value - 1.0, value + 1.0), Unit::Nanos);
        let pair = |from, to, nearness, value| Transfer {
            from,
            to,
            nearness,
            home: None,
            latency: Latency { ns: ns(value), cycles: ns(value), ticks: ns(value) },
        };
        let near = Nearness::SameLastCache;
        let far = Nearness::OtherPackage;
        let classes = BTreeMap::from([(near, vec![(0, 1), (1, 0)]), (far, vec![(0, 2), (2, 0)])]);
        let summed = summed(&classes, &[pair(0, 1, near, 20.0), pair(1, 0, near, 24.0)]);
        assert_eq!((summed[0].pairs_measured, summed[0].pairs_possible), (2, 2));
        assert_eq!(summed[0].ns.estimate().unwrap(), Estimate::new(22.0, 19.0, 25.0));
        assert_eq!(summed[1].pairs_measured, 0);
        assert!(summed[1].ns.estimate().is_none());
    }

    #[test]
    fn pairs_that_cannot_share_what_they_claim_are_doubted() {
        let ns = |value: f64| Quantity::measured(Estimate::exact(value), Unit::Nanos);
        let pair = |nearness, value| Transfer {
            from: 0,
            to: 1,
            nearness,
            home: None,
            latency: Latency { ns: ns(value), cycles: ns(value), ticks: ns(value) },
        };
        let pairs = [
            pair(Nearness::SameLastCache, 37.0),
            pair(Nearness::SameLastCache, 163.0),
            pair(Nearness::OtherPackage, 200.0),
        ];
        let doubts = super::doubts(&pairs, Some(15.4));
        assert!(doubts.len() == 1 && doubts[0].contains("163 ns"), "{doubts:?}");
        assert!(super::doubts(&pairs, None).is_empty());
    }

    #[test]
    fn partners_are_one_of_each_kind() {
        let drawn = [
            (Nearness::SameCore, (0, 8)),
            (Nearness::SameLastCache, (1, 0)),
            (Nearness::SameLastCache, (0, 2)),
            (Nearness::OtherPackage, (3, 4)),
        ];
        assert_eq!(partners(&drawn, 0), [(Nearness::SameCore, 8), (Nearness::SameLastCache, 1)]);
    }
}
