//! What its probes say of a load.

use crate::samples::tally::Probe;
use model::predict::MeasuredCurve;
use records::profile::{Level, Pattern};
use units::{Basis, Estimate, Quantity, Unit, middle_sorted, share};

/// How long loads take on this machine, as far as it matters here.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    /// From L1: a second reading is one, and what both have in common is not known.
    pub l1_ns: f64,
    /// From L1, L2, L3 and memory, as far as the machine was measured.
    pub levels: [Option<Estimate>; 4],
    /// Of random reads, over the size of the area that they go over.
    pub by_area: Option<MeasuredCurve>,
}

impl Latencies {
    /// What a load from this level takes.
    pub fn of(&self, level: Level) -> Option<Estimate> {
        let number = match level {
            Level::L1 => 0,
            Level::L2 => 1,
            Level::L3 => 2,
            Level::Dram => 3,
            _ => return None,
        };
        self.levels[number]
    }

    /// A line that is there faster was in L1.
    fn near_ns(&self) -> f64 {
        let next = self.levels[1].map_or(2.0 * self.l1_ns, |l2| l2.value);
        f64::midpoint(self.l1_ns, next)
    }

    /// The same of one that goes over an area in no order: a cache does not hold all of one that is
    /// about as large as it is.
    fn over(&self, level: Level, footprint: Option<Estimate>) -> Option<Estimate> {
        let of_level = self.of(level)?;
        let known = self.by_area.as_ref().zip(footprint.filter(|bytes| bytes.hi.is_finite()));
        let Some((curve, bytes)) = known else { return Some(of_level) };
        let [value, lo, hi] = [bytes.value, bytes.lo, bytes.hi].map(|size| curve.at(size));
        Some(Estimate::new(value.value, lo.lo.min(value.lo), hi.hi.max(value.hi)))
    }
}

/// How the ticks of probes are read.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    pub ticks_a_ns: f64,
    pub latencies: Latencies,
    /// A load that the cache behind L2 serves: what it takes, and what probes say beyond L1.
    pub cache_ns: f64,
    pub probed_ns: f64,
    /// What a load takes that memory serves.
    pub memory_ns: f64,
    /// How long the probes of that load took beyond L1, one by one.
    pub known_ns: Vec<f64>,
}

impl Timing {
    /// From here on the line came from memory: what took a time that is nearer to memory's than to
    /// that of the last cache, by their ratio. Where the machine was measured, these are known
    /// better than by a short look, which other programs disturb.
    fn memory_from_ns(&self) -> f64 {
        let last = self.latencies.of(Level::L3).or_else(|| self.latencies.of(Level::L2));
        let measured = last.zip(self.latencies.of(Level::Dram));
        let (cache, memory) =
            measured.map_or((self.cache_ns, self.memory_ns), |(cache, memory)| (cache.value, memory.value));
        (cache * memory).sqrt()
    }

    /// Of a load that a cache serves, this share of the probes may go to memory: they stop the
    /// thread, and other programs run meanwhile. As many as of the known load, and half as many
    /// more, since one second is like another only by and large.
    fn astray(&self) -> f64 {
        let from = self.memory_from_ns();
        let far = self.known_ns.iter().filter(|&&ns| ns + self.latencies.l1_ns >= from).count();
        let known = share(far as u64, self.known_ns.len() as u64).map_or(0.0, |known| 1.5 * known.hi);
        known.clamp(ASTRAY, MOST_ASTRAY)
    }

    /// By how much a load that a cache served may look faster than it is: probes see some cores'
    /// caches, and not those of others.
    fn hidden_ns(&self) -> f64 {
        (self.cache_ns - self.probed_ns - self.latencies.l1_ns).max(0.0)
    }
}

/// What a load's probes say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Latency {
    pub probes: u64,
    pub mean_ns: Estimate,
    /// The same of those whose line was not in L1 yet.
    pub farther_ns: Estimate,
    /// The same of those that did not go to memory.
    pub cached_ns: Estimate,
    /// By how much a load that a cache behind L1 served may look faster than it is.
    pub hidden_ns: f64,
    /// The share of them that went to memory.
    pub from_memory: Estimate,
    /// The share of the time that these took.
    pub time_in_memory: f64,
    /// No more of them than this may have gone there because the thread was stopped.
    pub astray: f64,
}

impl Latency {
    /// The share of the time that memory took, of a load that L1 and L2 serve hardly at all: what
    /// did not come from memory came from L3, which may have taken longer than probes see.
    pub(crate) fn time_in_memory_beyond_l2(&self) -> Estimate {
        let each = |time: f64, share: f64| time * self.mean_ns.value / share.max(f64::MIN_POSITIVE);
        let far = each(self.time_in_memory, self.from_memory.value);
        let near = each(1.0 - self.time_in_memory, 1.0 - self.from_memory.value) + self.hidden_ns;
        let of = |share: f64| share * far / (share * far + (1.0 - share) * near).max(f64::MIN_POSITIVE);
        Estimate::new(of(self.from_memory.value), of(self.from_memory.lo), of(self.from_memory.hi))
    }
}

/// A page fault or an interrupt took longer than any level of memory does.
const INTERRUPTED_NS: f64 = 10_000.0;
/// The least and the most that may go astray: where most do, nothing is known.
pub(crate) const ASTRAY: f64 = 0.1;
const MOST_ASTRAY: f64 = 0.5;
/// Fewer say nothing.
const LEAST_PROBES: usize = 16;
/// Probes of a burst follow one another; between bursts there is at least this.
pub(super) const BETWEEN_BURSTS_NS: u64 = 300_000;
const Z: f64 = 1.959_964;

/// The latency that these probes of a load saw: those that came while the thread had its CPU
/// without a break, if there are enough.
pub(crate) fn latency(probes: &[Probe], timing: &Timing) -> Option<Latency> {
    let steady: Vec<Probe> = probes.iter().filter(|probe| probe.is_steady).copied().collect();
    let enough = steady.iter().filter(|probe| probe.ticks.0 > 0).count() >= LEAST_PROBES;
    let probes = if enough { &steady[..] } else { probes };
    let again: Vec<u32> = probes.iter().map(|p| p.ticks.1).filter(|&ticks| ticks > 0).collect();
    if again.len() < LEAST_PROBES {
        return None;
    }
    let base = usual_ticks(again);
    let mut seen: Vec<(u64, f64)> = probes
        .iter()
        .filter(|probe| probe.ticks.0 > 0)
        .map(|probe| {
            let ns = (f64::from(probe.ticks.0) - base) / timing.ticks_a_ns + timing.latencies.l1_ns;
            (probe.kept.sample.time_ns, ns.max(0.0))
        })
        .filter(|(_, ns)| *ns < INTERRUPTED_NS)
        .collect();
    if seen.len() < LEAST_PROBES {
        return None;
    }
    seen.sort_unstable_by_key(|(time, _)| *time);
    let sum: f64 = seen.iter().map(|(_, ns)| ns).sum();
    let (mean, half) = mean(&seen);
    let near_ns = timing.latencies.near_ns();
    let beyond: Vec<(u64, f64)> = seen.iter().filter(|(_, ns)| *ns > near_ns).copied().collect();
    let (farther, farther_half) =
        if beyond.len() < LEAST_PROBES { (mean, half) } else { self::mean(&beyond) };
    let memory_from_ns = timing.memory_from_ns();
    let far: Vec<f64> = seen.iter().map(|(_, ns)| *ns).filter(|&ns| ns >= memory_from_ns).collect();
    let from_memory = share(far.len() as u64, seen.len() as u64)?;
    let hidden = (1.0 - from_memory.lo) * timing.hidden_ns();
    let cached: Vec<(u64, f64)> = seen.iter().filter(|(_, ns)| *ns < memory_from_ns).copied().collect();
    let (cached, cached_half) = if cached.len() < LEAST_PROBES { (mean, half) } else { self::mean(&cached) };
    Some(Latency {
        probes: seen.len() as u64,
        mean_ns: Estimate::new(mean, (mean - half).max(0.0), mean + half + hidden),
        farther_ns: Estimate::new(farther, (farther - farther_half).max(0.0), farther + farther_half),
        cached_ns: Estimate::new(cached, (cached - cached_half).max(0.0), cached + cached_half),
        hidden_ns: timing.hidden_ns(),
        from_memory,
        time_in_memory: if sum > 0.0 { far.iter().sum::<f64>() / sum } else { 0.0 },
        astray: timing.astray(),
    })
}

/// What is told of how long a load takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Told {
    /// By its probes.
    Measured(Estimate),
    /// By its level.
    Modelled(Estimate),
    /// Its probes tell only that it takes no longer than this.
    AtMost(f64),
}

impl Told {
    /// The interval that it lies in.
    pub(crate) fn ns(self) -> Estimate {
        match self {
            Self::Measured(ns) | Self::Modelled(ns) => ns,
            Self::AtMost(most) => Estimate::new(most, 0.0, most),
        }
    }

    pub(crate) fn quantity(self) -> Quantity {
        match self {
            Self::Measured(ns) => Quantity::measured(ns, Unit::Nanos),
            Self::Modelled(ns) => Quantity::modelled(ns, Unit::Nanos),
            Self::AtMost(most) => Quantity::at_most(most, Unit::Nanos, Basis::Measured),
        }
    }
}

/// What a load takes: by its probes where they can tell, else by its level.
///
/// They cannot tell what comes from a cache: stopping the thread has gone through the caches, too.
/// Nor what is read in no chain: the core has fetched it before it comes to the instruction
/// that it stops at. Of a chain's, it has fetched some: what is in L1 already, where most comes
/// from memory, does not count. Nor can they tell the whole of a walk of the page table, which a
/// core begins before it stops: what goes to memory takes as long as reads take that go over as
/// much memory in no order, or as probes say where that is more.
///
/// What a cache serves, be it known which one or not, takes no longer than those of its probes that
/// a cache served: where no level tells more, that is all that is known. `is_near` says that memory
/// serves hardly any of it.
pub(crate) fn of_load(
    seen: Option<&Latency>,
    level: Level,
    pattern: Pattern,
    footprint: Option<Estimate>,
    is_near: bool,
    timing: &Timing,
) -> Option<Told> {
    let seen = seen?;
    let is_cached =
        matches!(level, Level::L1 | Level::L2 | Level::L3) || is_near && level == Level::Unresolved;
    let is_hidden = match level {
        _ if is_cached => seen.from_memory.value < seen.astray,
        Level::Dram => pattern == Pattern::Parallel || seen.from_memory.value < 0.5,
        _ => false,
    };
    let by_area = footprint.filter(|_| matches!(pattern, Pattern::Chain | Pattern::Parallel));
    let of_level = timing.latencies.over(level, by_area);
    if let Some(of_level) = of_level
        .filter(|of_level| !is_hidden && level == Level::Dram && seen.farther_ns.value < of_level.value)
    {
        return Some(Told::Modelled(Estimate { lo: of_level.lo.min(seen.farther_ns.lo), ..of_level }));
    }
    let Some(of_level) = of_level.filter(|_| is_hidden) else {
        return Some(match level {
            Level::L1 if is_hidden => Told::AtMost(seen.cached_ns.hi),
            _ if is_cached && is_hidden => Told::AtMost(seen.cached_ns.hi + seen.hidden_ns),
            // Being stopped only makes it longer: the next of a chain is not fetched ahead.
            Level::Unresolved
                if is_near || pattern == Pattern::Chain && seen.from_memory.value < seen.astray =>
            {
                Told::AtMost(seen.mean_ns.hi)
            }
            Level::Dram => Told::Measured(seen.farther_ns),
            _ => Told::Measured(seen.mean_ns),
        });
    };
    // It may wait for more than its line, as for the walk of a page table: up to what probes say.
    let most = if is_cached { seen.mean_ns.hi } else { 0.0 };
    Some(Told::Modelled(Estimate { hi: of_level.hi.max(most), ..of_level }))
}

/// What a second reading usually takes: the mean of all but those that something interrupted. Some
/// counters move in steps of several nanoseconds; a median would be a step.
pub fn usual_ticks(mut again: Vec<u32>) -> f64 {
    again.sort_unstable();
    let most = 2 * middle_sorted(&again).unwrap_or(0).max(1);
    let usual = &again[..again.partition_point(|&ticks| ticks <= most)];
    usual.iter().map(|&ticks| f64::from(ticks)).sum::<f64>() / usual.len().max(1) as f64
}

/// The mean of these, and half the width of its interval.
fn mean(seen: &[(u64, f64)]) -> (f64, f64) {
    let mean = seen.iter().map(|(_, ns)| ns).sum::<f64>() / seen.len() as f64;
    (mean, Z * standard_error(seen, mean))
}

/// Of the mean: probes of one burst are alike, so bursts are what counts.
fn standard_error(seen: &[(u64, f64)], mean: f64) -> f64 {
    let mut squares = 0.0;
    let mut burst = 0.0;
    let mut bursts = 1;
    let mut last = seen[0].0;
    for &(time, ns) in seen {
        if time - last > BETWEEN_BURSTS_NS {
            squares += burst * burst;
            burst = 0.0;
            bursts += 1;
        }
        last = time;
        burst += ns - mean;
    }
    squares += burst * burst;
    // Of one burst nothing is known but its mean.
    if bursts == 1 {
        return mean;
    }
    let few = f64::from(bursts) / f64::from(bursts - 1);
    (squares * few).sqrt() / seen.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::heap::AllNear;
    use crate::samples::tally::{Kept, Sample};

    const TIMING: Timing = Timing {
        ticks_a_ns: 2.0,
        latencies: Latencies { l1_ns: 1.5, levels: [None; 4], by_area: None },
        cache_ns: 20.0,
        probed_ns: 18.5,
        memory_ns: 180.0,
        known_ns: Vec::new(),
    };

    fn probe(time_ns: u64, first: u32) -> Probe {
        let sample = Sample { process: 1, thread: 1, time_ns, in_kernel: false, ip: None, registers: None };
        Probe {
            kept: Kept { sample, near: AllNear::default() },
            address: 0,
            ticks: (first, 50),
            is_steady: false,
        }
    }

    #[test]
    fn latency_is_what_the_first_reading_takes_longer() {
        let probes: Vec<Probe> =
            (0..64).map(|n| probe(n * 1_000_000, if n % 4 == 0 { 250 } else { 54 })).collect();
        let found = latency(&probes, &TIMING).unwrap();
        // A quarter takes 101.5 ns, the rest 3.5 ns.
        assert!((found.mean_ns.value - 28.0).abs() < 0.01, "{found:?}");
        assert!(found.mean_ns.lo > 10.0 && found.mean_ns.lo < 20.0 && found.mean_ns.hi > 35.0, "{found:?}");
        assert!((found.from_memory.value - 0.25).abs() < 1e-9 && found.time_in_memory > 0.9);
        assert!((found.cached_ns.value - 3.5).abs() < 0.01 && found.cached_ns.hi < 4.0, "{found:?}");
        assert_eq!(latency(&probes[..10], &TIMING), None);
    }

    #[test]
    fn memory_begins_between_it_and_the_last_cache() {
        assert!((TIMING.memory_from_ns() - 60.0).abs() < 1e-9);
        let with = |l2: Option<f64>, l3: Option<f64>, memory: Option<f64>| {
            let levels = [Some(1.5), l2, l3, memory].map(|ns| ns.map(Estimate::exact));
            Timing { latencies: Latencies { levels, ..TIMING.latencies }, ..TIMING }.memory_from_ns()
        };
        assert!((with(Some(5.0), Some(10.0), Some(90.0)) - 30.0).abs() < 1e-9, "as the machine was measured");
        assert!((with(Some(10.0), None, Some(90.0)) - 30.0).abs() < 1e-9, "without an L3");
        assert!((with(Some(5.0), Some(10.0), None) - 60.0).abs() < 1e-9, "no record of memory");
    }

    #[test]
    fn what_probes_do_not_see_of_a_cache_is_no_time_in_memory() {
        // A quarter takes 101.5 ns, the rest 3.5 ns, and 37 more that are not seen.
        let probes: Vec<Probe> =
            (0..64).map(|n| probe(n * 1_000_000, if n % 4 == 0 { 250 } else { 54 })).collect();
        let timing = Timing { cache_ns: 40.0, memory_ns: 90.0, probed_ns: 1.5, ..TIMING };
        let found = latency(&probes, &timing).unwrap();
        assert!(found.time_in_memory > 0.9, "{found:?}");
        let time = found.time_in_memory_beyond_l2();
        assert!((time.value - 25.4 / (25.4 + 30.4)).abs() < 0.01, "{time:?}");
        assert!(time.lo > 0.2 && time.lo < 0.4 && time.hi > 0.55 && time.hi < 0.7, "{time:?}");
        let near: Vec<Probe> = (0..64).map(|n| probe(n * 1_000_000, 54)).collect();
        assert_eq!(latency(&near, &timing).unwrap().time_in_memory_beyond_l2().value, 0.0);
        let far: Vec<Probe> = (0..64).map(|n| probe(n * 1_000_000, 250)).collect();
        assert_eq!(latency(&far, &timing).unwrap().time_in_memory_beyond_l2().value, 1.0);
    }

    #[test]
    fn what_probes_cannot_tell_is_by_the_level() {
        let known = |ns: f64| Some(Estimate::exact(ns));
        let levels = [known(1.5), known(5.0), known(20.0), known(120.0)];
        let timing = Timing { latencies: Latencies { levels, ..TIMING.latencies }, ..TIMING };
        let seen = |from_memory| Latency {
            probes: 100,
            mean_ns: Estimate::new(70.0, 60.0, 90.0),
            farther_ns: Estimate::new(80.0, 70.0, 95.0),
            cached_ns: Estimate::new(14.0, 12.0, 17.0),
            hidden_ns: 3.0,
            from_memory: Estimate::exact(from_memory),
            time_in_memory: 0.5,
            astray: ASTRAY,
        };
        let of = |from_memory, level, pattern| {
            of_load(Some(&seen(from_memory)), level, pattern, None, false, &timing).map(|told| match told {
                Told::Measured(ns) => (ns.value, true),
                Told::Modelled(ns) => (ns.value, false),
                Told::AtMost(_) => unreachable!("the level is known"),
            })
        };
        assert_eq!(of(0.9, Level::Dram, Pattern::Chain), Some((120.0, false)), "a walk is hidden");
        let near = Latency { farther_ns: Estimate::new(150.0, 140.0, 160.0), ..seen(0.9) };
        let told = of_load(Some(&near), Level::Dram, Pattern::Chain, None, false, &timing).unwrap();
        assert_eq!(told, Told::Measured(near.farther_ns), "longer than the level's");
        assert_eq!(of(0.9, Level::Dram, Pattern::Parallel), Some((120.0, false)));
        assert_eq!(of(0.1, Level::Dram, Pattern::Stream), Some((120.0, false)), "fetched ahead");
        assert_eq!(of(0.01, Level::L2, Pattern::Chain), Some((5.0, false)));
        assert_eq!(of(0.3, Level::L2, Pattern::Chain), Some((70.0, true)), "not all of it is there");
        let cached = of_load(Some(&seen(0.01)), Level::L2, Pattern::Chain, None, false, &timing);
        let by_level = Told::Modelled(Estimate::new(5.0, 5.0, 90.0));
        assert_eq!(cached, Some(by_level), "if it waits for more than its line");
        assert_eq!(of(0.9, Level::Dirty, Pattern::Chain), Some((70.0, true)));
        assert_eq!(of_load(None, Level::L2, Pattern::Chain, None, false, &timing), None);
        let unknown = of_load(Some(&seen(0.0)), Level::L2, Pattern::Chain, None, false, &TIMING);
        assert_eq!(unknown, Some(Told::AtMost(20.0)), "the machine was not measured");
        let near = of_load(Some(&seen(0.03)), Level::L1, Pattern::Stream, None, true, &TIMING);
        assert_eq!(near, Some(Told::AtMost(17.0)), "nothing is hidden of what is in L1");
        let of_unknown = |is_near| {
            let seen = seen(0.03);
            of_load(Some(&seen), Level::Unresolved, Pattern::Stream, None, is_near, &timing)
        };
        assert_eq!(of_unknown(true), Some(Told::AtMost(20.0)), "some cache");
        let far = of_load(Some(&seen(0.3)), Level::Unresolved, Pattern::Stream, None, true, &timing);
        assert_eq!(far, Some(Told::AtMost(90.0)), "probes say another thing than addresses");
        assert_eq!(of_unknown(false), Some(Told::Measured(seen(0.03).mean_ns)));
    }

    #[test]
    fn a_coarse_counter_is_averaged() {
        // Of 60 ticks, in steps of 25; and what an interrupt takes.
        let steps = (0..100).map(|n| if n % 5 < 2 { 75 } else { 50 }).chain([5000; 3]);
        assert!((usual_ticks(steps.collect()) - 60.0).abs() < 1e-9);
        assert_eq!(usual_ticks(Vec::new()), 0.0);
    }

    #[test]
    fn a_burst_counts_once() {
        let spread: Vec<Probe> = (0..64).map(|n| probe(n * 1_000_000, 50 + 10 * (n as u32 % 8))).collect();
        let bursts: Vec<Probe> =
            (0..64).map(|n| probe(n / 8 * 1_000_000 + n % 8, 50 + 10 * (n as u32 / 8))).collect();
        let width = |probes: &[Probe]| latency(probes, &TIMING).unwrap().mean_ns.relative_half_width();
        assert!(width(&bursts) > 2.0 * width(&spread));
        let one: Vec<Probe> = (0..64).map(|n| probe(n, 250)).collect();
        assert_eq!(latency(&one, &TIMING).unwrap().mean_ns.lo, 0.0, "one burst says nothing of others");
    }

    #[test]
    fn what_was_not_read_or_interrupted_does_not_count() {
        let mut probes: Vec<Probe> = (0..32).map(|n| probe(n * 1_000_000, 250)).collect();
        probes.push(probe(40_000_000, 4_000_000));
        probes.push(Probe { ticks: (0, 0), ..probe(41_000_000, 0) });
        let found = latency(&probes, &TIMING).unwrap();
        assert_eq!((found.probes, found.mean_ns.value), (32, 101.5));
    }

    #[test]
    fn what_probes_do_not_see_of_caches_widens_the_interval() {
        let probes: Vec<Probe> =
            (0..64).map(|n| probe(n * 1_000_000, if n % 4 == 0 { 250 } else { 54 })).collect();
        let seen = latency(&probes, &TIMING).unwrap();
        let hidden = latency(&probes, &Timing { probed_ns: 0.0, ..TIMING }).unwrap();
        assert_eq!((hidden.mean_ns.value, hidden.mean_ns.lo), (seen.mean_ns.value, seen.mean_ns.lo));
        let wider = hidden.mean_ns.hi - seen.mean_ns.hi;
        assert!(
            wider > 0.7 * 18.5 && wider < 0.9 * 18.5,
            "three quarters and more came from caches: {wider}"
        );
    }
}
