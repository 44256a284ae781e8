//! What experiments with several threads share: which CPUs join and in what order, how close they
//! are, and how the channels of a crew become quantities.

use crate::context::{Context, Refused};
use lab::campaign::{Block, Series};
use lab::crew::{Crew, CrewError, CrewRig};
use lab::stats;
use records::host::Host;
use records::machine::Nearness;
use std::cell::RefCell;
use units::{Bytes, Estimate, Latency, Quantity, Unit};

/// A crew on these CPUs, or why there can be none.
pub(crate) fn crew(ctx: &Context<'_>, cpus: &[u32]) -> Result<RefCell<Crew>, Refused> {
    let cpus: Vec<usize> = cpus.iter().map(|&c| c as usize).collect();
    match Crew::new(ctx.cpu(), &cpus, ctx.tsc.value) {
        Ok(crew) => Ok(RefCell::new(crew)),
        Err(e @ CrewError::CountersApart { .. }) => Err(Refused::not_possible(
            e.to_string(),
            "a firmware or hypervisor that keeps the time stamp counters of all CPUs together",
        )),
        Err(e) => Err(e.into()),
    }
}

/// CPUs that this process may run on, the measuring one first, then by how close they are to it:
/// cores before hardware threads of cores that are busy already.
pub(crate) fn joining_order(host: &Host, home: u32) -> Vec<u32> {
    let mut order = vec![home];
    let mut left: Vec<u32> = host.usable_cpus().into_iter().filter(|&c| c != home).collect();
    left.sort_by_key(|&c| (nearness(host, home, c), c));
    while !left.is_empty() {
        // A round takes one CPU of each core that has fewest at work.
        let taken =
            |c: u32| order.iter().filter(|&&o| o == c || nearness(host, o, c) == Nearness::SameCore).count();
        let fewest = left.iter().map(|&c| taken(c)).min().unwrap_or(0);
        let next = left.iter().position(|&c| taken(c) == fewest).unwrap_or(0);
        order.push(left.remove(next));
    }
    order
}

/// 1, 2, 4 … and all.
pub(crate) fn crowd_sizes(all: usize) -> Vec<usize> {
    let mut sizes: Vec<usize> =
        std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|&n| n < all).collect();
    sizes.push(all.max(1));
    sizes
}

pub(crate) fn nearness(host: &Host, a: u32, b: u32) -> Nearness {
    let (Some(one), Some(other)) = (host.cpu(a), host.cpu(b)) else { return Nearness::Unknown };
    if one.siblings.get().is_some_and(|s| s.contains(b)) {
        return Nearness::SameCore;
    }
    if shares_last_cache(host, a, b) == Some(true) {
        return Nearness::SameLastCache;
    }
    if one.node.value().is_some() && one.node.value() == other.node.value() {
        return Nearness::SameNode;
    }
    match (one.package.value(), other.package.value()) {
        (Some(p), Some(q)) if p == q => Nearness::SamePackage,
        (Some(_), Some(_)) => Nearness::OtherPackage,
        _ => Nearness::Unknown,
    }
}

fn shares_last_cache(host: &Host, a: u32, b: u32) -> Option<bool> {
    Some(host.data_caches_of(a).last()?.shared_by.contains(b))
}

/// A cache that holds data, as claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimedCache {
    pub name: String,
    pub size: Bytes,
    /// Unknown where only CPUID tells of it.
    pub shared_by: Option<records::host::CpuList>,
}

/// The caches of one CPU, nearest first, with what is claimed of them.
pub(crate) fn caches(host: &Host, cpu: u32) -> Vec<ClaimedCache> {
    let listed = host.data_caches_of(cpu);
    let shared_by = |level| listed.iter().find(|c| c.level == level).map(|c| c.shared_by.clone());
    host.data_cache_sizes_of(cpu)
        .into_iter()
        .filter_map(|c| {
            Some(ClaimedCache { name: format!("L{}", c.level), size: c.size?, shared_by: shared_by(c.level) })
        })
        .collect()
}

/// All last-level caches that these CPUs reach, together.
pub(crate) fn last_caches(host: &Host, cpus: &[u32], otherwise: Bytes) -> Bytes {
    let mut seen: Vec<ClaimedCache> = Vec::new();
    for &cpu in cpus {
        if let Some(last) = caches(host, cpu).pop() {
            if !seen.contains(&last) {
                seen.push(last);
            }
        }
    }
    let total = seen.iter().map(|c| c.size.0).sum::<u64>();
    if total == 0 { otherwise } else { Bytes(total) }
}

/// The node to place a CPU's memory on: none where there is only one.
pub(crate) fn node_to_bind(host: &Host, cpu: u32) -> Option<u32> {
    let with_memory = host.nodes.iter().filter(|n| n.total.value().is_none_or(|t| t.0 > 0)).count();
    if with_memory < 2 { None } else { host.node_of(cpu).map(|n| n.id) }
}

/// The latency of one member.
pub(crate) fn latency_of(ctx: &mut Context<'_>, series: &Series, member: usize) -> Latency {
    latency_by(ctx, series, |b| CrewRig::ticks(b, member), |b| CrewRig::cycles_per_tick(b, member))
}

/// The latency of the median member.
pub(crate) fn median_latency(ctx: &mut Context<'_>, series: &Series, members: usize) -> Latency {
    let ticks = |b: &Block| stats::median(&b.values[..members]);
    let cycles = |b: &Block| {
        let each: Vec<f64> =
            (0..members).map(|i| CrewRig::ticks(b, i) * CrewRig::cycles_per_tick(b, i)).collect();
        stats::median(&each)
    };
    latency_by(ctx, series, ticks, move |b| cycles(b) / ticks(b))
}

/// A latency from anything that can be said of a block: ticks, and core cycles per tick.
pub(crate) fn latency_by(
    ctx: &mut Context<'_>,
    series: &Series,
    ticks: impl Fn(&Block) -> f64,
    cycles_per_tick: impl Fn(&Block) -> f64,
) -> Latency {
    let ns_per_tick = ctx.ns_per_tick();
    Latency {
        ns: ctx.quantity(series, Unit::Nanos, |b| ticks(b) * ns_per_tick),
        cycles: ctx.quantity(series, Unit::Cycles, |b| ticks(b) * cycles_per_tick(b)),
        ticks: ctx.quantity(series, Unit::Ticks, ticks),
    }
}

/// Two groups of blocks count as such if the slower one is at least this many times the faster, and
/// neither holds less than the share below.
const TWO_MODES: f64 = 1.4;
const LEAST_GROUP_SHARE: f64 = 0.1;

/// The medians of two groups of values, if they fall into two: a gap in the middle, and none as
/// wide elsewhere.
pub(crate) fn two_modes(values: &[f64]) -> Option<(f64, f64)> {
    let sorted = stats::sorted(values);
    let rare = ((sorted.len() as f64 * LEAST_GROUP_SHARE).ceil() as usize).max(2);
    if sorted.len() < 4 * rare.min(3) {
        return None;
    }
    let gap = |i: usize| sorted[i] / sorted[i - 1];
    let widest = (rare..=sorted.len() - rare).max_by(|&a, &b| gap(a).total_cmp(&gap(b)))?;
    let (low, high) = (stats::median(&sorted[..widest]), stats::median(&sorted[widest..]));
    // Two groups stand apart if the gap is most of what is between them; a long tail has no such
    // gap.
    let apart = gap(widest).ln() > 0.4 * (high / low).ln();
    (low > 0.0 && high / low > TWO_MODES && apart).then_some((low, high))
}

/// A figure that depends on where virtual CPUs run. A hypervisor may move them between last-level
/// caches and nodes during a measurement. Then the blocks fall into two groups, the median only
/// says which group is larger, and the interval has to span both.
pub(crate) fn wherever(
    ctx: &mut Context<'_>,
    series: &Series,
    unit: Unit,
    f: impl Fn(&Block) -> f64,
) -> (Quantity, Option<(f64, f64)>) {
    let quantity = ctx.quantity(series, unit, &f);
    let values: Vec<f64> = series.counted().iter().map(|b| f(b)).collect();
    match (two_modes(&values), quantity.estimate(), &quantity) {
        (Some((low, high)), Some(e), Quantity::Resolved { disturbed, .. }) => {
            let wide = Estimate::new(e.value, e.lo.min(low), e.hi.max(high));
            (Quantity::measured(wide, unit).disturbed_by(disturbed.clone()), Some((low, high)))
        }
        _ => (quantity, None),
    }
}

/// A member's latency, with the two groups that its blocks fell into (in ns), if they did.
pub(crate) fn latency_wherever(
    ctx: &mut Context<'_>,
    series: &Series,
    ticks: impl Fn(&Block) -> f64,
    cycles_per_tick: impl Fn(&Block) -> f64,
) -> (Latency, Option<(f64, f64)>) {
    let ns_per_tick = ctx.ns_per_tick();
    let (ns, modes) = wherever(ctx, series, Unit::Nanos, |b| ticks(b) * ns_per_tick);
    let cycles = wherever(ctx, series, Unit::Cycles, |b| ticks(b) * cycles_per_tick(b)).0;
    (Latency { ns, cycles, ticks: wherever(ctx, series, Unit::Ticks, ticks).0 }, modes)
}

/// The note on two groups of values.
pub(crate) fn moved(what: &str, (low, high): (f64, f64), unit: &str) -> String {
    format!(
        "{what}: sometimes {low:.0}, sometimes {high:.0} {unit}, as if a hypervisor moved virtual CPUs between last-level \
         caches; the interval spans both"
    )
}

/// One figure over another.
pub(crate) fn ratio(over: &Quantity, under: &Quantity) -> Quantity {
    match (over, under) {
        (Quantity::Unresolved { .. }, _) => over.clone(),
        (_, Quantity::Unresolved { .. }) => under.clone(),
        (Quantity::Resolved { disturbed: a, .. }, Quantity::Resolved { disturbed: b, .. }) => {
            let (Some(x), Some(y)) = (over.estimate(), under.estimate()) else {
                return Quantity::unresolved("not measured");
            };
            if y.value <= 0.0 {
                return Quantity::unresolved("the figure it is compared with is 0");
            }
            Quantity::measured(x.over(y), Unit::Ratio).disturbed_by(a.clone().or_else(|| b.clone()))
        }
    }
}

/// Median of several figures; the interval reaches over all of theirs.
pub(crate) fn pooled(all: &[Quantity], unit: Unit) -> Quantity {
    let estimates: Vec<Estimate> = all.iter().filter_map(Quantity::estimate).collect();
    if estimates.is_empty() {
        return all.first().cloned().unwrap_or_else(|| Quantity::unresolved("not measured"));
    }
    let values: Vec<f64> = estimates.iter().map(|e| e.value).collect();
    let lo = estimates.iter().map(|e| e.lo).fold(f64::INFINITY, f64::min);
    let hi = estimates.iter().map(|e| e.hi).fold(f64::NEG_INFINITY, f64::max);
    let disturbed = all.iter().find_map(|q| match q {
        Quantity::Resolved { disturbed, .. } => disturbed.clone(),
        Quantity::Unresolved { .. } => None,
    });
    Quantity::measured(Estimate::new(stats::median(&values), lo, hi), unit).disturbed_by(disturbed)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use records::host::{Cache, CacheKind, CoreKind, Cpu, CpuList, Fact, Node};

    /// Two packages (a node each) of two last-level caches of two cores of two threads: CPUs 0-7
    /// are first threads, 8-15 their siblings.
    pub(crate) fn big_host() -> Host {
        let mut host = Host::default();
        let list = |ids: &[u32]| ids.iter().copied().collect::<CpuList>();
        host.topology.online = Fact::Known("0-15".parse().unwrap());
        for id in 0..16u32 {
            let (core, package) = (id % 8, id % 8 / 4);
            host.cpus.push(Cpu {
                id,
                online: true,
                kind: CoreKind::Uniform,
                package: Fact::Known(package),
                die: Fact::Known(0),
                cluster: Fact::unknown("none"),
                core: Fact::Known(core),
                node: Fact::Known(package),
                siblings: Fact::Known(list(&[core, core + 8])),
                max_hz: Fact::unknown("none"),
            });
        }
        let cache = |level, size, ids: &[u32]| Cache {
            level,
            kind: if level == 1 { CacheKind::Data } else { CacheKind::Unified },
            size: Fact::Known(Bytes(size)),
            line: Fact::Known(Bytes(64)),
            ways: Fact::unknown("none"),
            sets: Fact::unknown("none"),
            shared_by: list(ids),
        };
        for core in 0..8 {
            host.caches.push(cache(1, 32 << 10, &[core, core + 8]));
            host.caches.push(cache(2, 1 << 20, &[core, core + 8]));
        }
        for pair in 0..4 {
            let c = pair * 2;
            host.caches.push(cache(3, 32 << 20, &[c, c + 1, c + 8, c + 9]));
        }
        for id in 0..2 {
            let c = id * 4;
            host.nodes.push(Node {
                id,
                cpus: list(&[c, c + 1, c + 2, c + 3, c + 8, c + 9, c + 10, c + 11]),
                total: Fact::Known(Bytes::gib(4)),
                free: Fact::Known(Bytes::gib(3)),
                distances: Fact::Known(if id == 0 { vec![10, 21] } else { vec![21, 10] }),
                hugetlb: Vec::new(),
            });
        }
        host
    }

    #[test]
    fn near_is_what_is_shared() {
        let host = big_host();
        assert_eq!(nearness(&host, 0, 8), Nearness::SameCore);
        assert_eq!(nearness(&host, 0, 9), Nearness::SameLastCache);
        assert_eq!(nearness(&host, 0, 3), Nearness::SameNode);
        assert_eq!(nearness(&host, 0, 12), Nearness::OtherPackage);
        assert_eq!(nearness(&host, 0, 99), Nearness::Unknown);
    }

    #[test]
    fn cores_join_before_siblings() {
        let order = joining_order(&big_host(), 5);
        assert_eq!(order.len(), 16);
        assert_eq!(order[..4], [5, 4, 6, 7], "the same last cache, then the same node");
        assert!(order[..8].iter().all(|&c| c < 8), "{order:?}");
        assert_eq!(order[8], 13, "its own sibling first of the second round");
    }

    #[test]
    fn crowds_double_until_all() {
        assert_eq!(crowd_sizes(1), [1]);
        assert_eq!(crowd_sizes(2), [1, 2]);
        assert_eq!(crowd_sizes(6), [1, 2, 4, 6]);
        assert_eq!(crowd_sizes(8), [1, 2, 4, 8]);
    }

    #[test]
    fn caches_are_counted_once() {
        let host = big_host();
        let all = host.usable_cpus();
        assert_eq!(last_caches(&host, &all, Bytes(1)), Bytes::mib(128));
        assert_eq!(last_caches(&host, &[0, 1, 8], Bytes(1)), Bytes::mib(32));
        assert_eq!(last_caches(&Host::default(), &[0], Bytes(7)), Bytes(7));
        assert_eq!(node_to_bind(&host, 12), Some(1));
    }

    #[test]
    fn two_groups_are_told_from_a_tail() {
        let two: Vec<f64> =
            (0..40).map(|i| if i % 3 == 0 { 160.0 } else { 37.0 } + f64::from(i % 5)).collect();
        let (low, high) = two_modes(&two).unwrap();
        assert!((37.0..42.0).contains(&low) && (160.0..165.0).contains(&high));
        let tail: Vec<f64> = (0..40).map(|i| 37.0 * 1.03f64.powi(i)).collect();
        assert_eq!(two_modes(&tail), None, "no gap");
        let mut rare = vec![37.0; 40];
        rare[7] = 160.0;
        assert_eq!(two_modes(&rare), None, "one wild block is none");
        assert_eq!(two_modes(&[1.0, 9.0]), None);
    }

    #[test]
    fn ratios_keep_their_doubts() {
        let q = |value, lo, hi| Quantity::measured(Estimate::new(value, lo, hi), Unit::Nanos);
        let r = ratio(&q(20.0, 19.0, 22.0), &q(10.0, 9.5, 10.5)).estimate().unwrap();
        assert!(r.value == 2.0 && r.lo < 1.9 && r.hi > 2.2, "{r:?}");
        assert!(ratio(&q(1.0, 1.0, 1.0), &Quantity::unresolved("no")).estimate().is_none());
        assert!(ratio(&q(1.0, 1.0, 1.0), &q(0.0, 0.0, 0.0)).estimate().is_none());
        let p = pooled(&[q(1.0, 0.5, 1.5), Quantity::unresolved("x"), q(3.0, 2.0, 9.0)], Unit::Nanos);
        assert_eq!(p.estimate().unwrap(), Estimate::new(2.0, 0.5, 9.0));
    }
}
