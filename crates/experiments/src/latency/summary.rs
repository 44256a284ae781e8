//! From the main curve to the record's levels: names, sizes beside the host's claims, latencies in
//! three units.

use crate::levels::{self, CurvePoint, FoundLevel};
use records::host::Host;
use records::machine::{Access, Curve, LatencyCurves, Level, Pattern, Point};
use units::{Estimate, Latency, Quantity, Unit};

/// Areas this many times as large as the last cache, as the host claims it, lie in memory.
const BEYOND: f64 = 2.0;

/// The levels that the main curve shows.
pub(crate) fn levels_of(curves: &LatencyCurves, host: &Host, cpu: u32) -> Vec<Level> {
    let Some(curve) = main_curve(curves) else { return Vec::new() };
    let resolved: Vec<(&Point, CurvePoint)> = curve
        .points
        .iter()
        .filter_map(|p| {
            let latency = p.latency.cycles.estimate()?;
            // Records from before fastest blocks were kept in cycles have them in nanoseconds.
            let ns = p.latency.ns.value().filter(|ns| *ns > 0.0);
            let quiet = p.p05_cycles.or(ns.map(|ns| p.p05_ns * latency.value / ns)).unwrap_or(latency.lo);
            Some((p, CurvePoint { size: p.size.0 as f64, latency, quiet }))
        })
        .collect();
    let points: Vec<CurvePoint> = resolved.iter().map(|r| r.1).collect();
    let caches = host.data_cache_sizes_of(cpu);
    let last_cache = caches.last().and_then(|c| c.size);
    // Where nothing is claimed, the largest areas are as near to memory as was measured.
    let memory_from =
        last_cache.map_or_else(|| points.last().map(|p| p.size / 2.0), |size| Some(size.0 as f64 * BEYOND));
    let found = levels::find(&points, memory_from, (!caches.is_empty()).then_some(caches.len()));
    let n = found.len();
    found
        .iter()
        .enumerate()
        .map(|(i, level)| {
            let memory = i + 1 == n && memory_from.is_none_or(|from| points[level.to].size >= from);
            let name = if memory { "DRAM".to_owned() } else { format!("L{}", i + 1) };
            let mut level = describe(level, name, memory, &resolved, claimed(host, cpu, i + 1, memory));
            if memory && last_cache.is_none() {
                level.note =
                    Some("the host claims no caches: a larger cache would give the same figures".to_owned());
            }
            level
        })
        .collect()
}

/// The curve that levels are read from: random reads in the pages that were asked for first.
pub(crate) fn main_curve(curves: &LatencyCurves) -> Option<&Curve> {
    curves.curves.iter().find(|c| c.pattern == Pattern::Random && c.access == Access::Read)
}

fn claimed(host: &Host, cpu: u32, number: usize, memory: bool) -> Quantity {
    if memory {
        return match host.memory.total.value() {
            Some(total) => Quantity::claimed(total.0 as f64, Unit::Bytes),
            None => Quantity::unresolved("the host does not state how much memory it has"),
        };
    }
    let claim =
        host.data_cache_sizes_of(cpu).into_iter().find(|c| c.level as usize == number).and_then(|c| c.size);
    match claim {
        Some(size) => Quantity::claimed(size.0 as f64, Unit::Bytes),
        None => Quantity::unresolved("the host claims no such cache"),
    }
}

fn describe(
    level: &FoundLevel,
    name: String,
    memory: bool,
    resolved: &[(&Point, CurvePoint)],
    size_claimed: Quantity,
) -> Level {
    let inside = &resolved[level.from..=level.to];
    let disturbed = inside.iter().find_map(|(p, _)| match &p.latency.ns {
        Quantity::Resolved { disturbed, .. } => disturbed.clone(),
        Quantity::Unresolved { .. } => None,
    });
    let cycles = Quantity::measured(level.latency, Unit::Cycles).disturbed_by(disturbed.clone());
    // The other units come from the same points, so that all three tell of the same loads.
    let same = |f: &dyn Fn(&Point) -> Option<Estimate>, unit| {
        let all: Vec<CurvePoint> = inside
            .iter()
            .filter(|(_, c)| level.latency.contains(c.latency.value))
            .filter_map(|(p, c)| {
                let latency = f(p)?;
                let quiet = c.quiet * latency.value / c.latency.value;
                Some(CurvePoint { size: c.size, latency, quiet })
            })
            .collect();
        if all.is_empty() {
            return Quantity::unresolved("no point of this level was resolved");
        }
        Quantity::measured(levels::middle(&all, levels::OF_TICKS), unit).disturbed_by(disturbed.clone())
    };
    let latency = Latency {
        ns: same(&|p| p.latency.ns.estimate(), Unit::Nanos),
        cycles,
        ticks: same(&|p| p.latency.ticks.estimate(), Unit::Ticks),
    };
    let size = match level.size {
        Some(size) => Quantity::measured(size, Unit::Bytes),
        None if memory => Quantity::unresolved("latency does not show the size of memory"),
        None => Quantity::unresolved("no larger size was measured"),
    };
    let note = if level.slope {
        Some("a slope, not a plateau: the interval is the range over the slope".to_owned())
    } else {
        shared_note(&size, &size_claimed)
    };
    Level { name, size, size_claimed, latency, note }
}

fn shared_note(size: &Quantity, claimed: &Quantity) -> Option<String> {
    let (size, claimed) = (size.estimate()?, claimed.value()?);
    if size.hi < claimed * 0.9 {
        Some("less than the host claims: other CPUs share it, or it is partitioned".to_owned())
    } else if size.lo > claimed * 1.1 {
        Some("more than the host claims".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::host::{CacheClaim, CacheKind};
    use records::machine::PageSupply;
    use units::Bytes;

    /// Caches of 32 KiB, 1 MiB and 16 MiB; the way to memory never gets quite flat.
    fn curves() -> LatencyCurves {
        let miss = |size: f64, cache: f64| (size / cache).log2().clamp(0.0, 1.0);
        let point = |i: i32| {
            let size = 1024.0 * 2f64.powf(f64::from(i) / 8.0);
            let steps = 10.0 * miss(size, 32768.0) + 36.0 * miss(size, 1048576.0);
            let memory = 300.0 * (size / 16777216.0).log2().max(0.0).powf(0.5) * miss(size, 16777216.0);
            let cycles = 4.0 + steps + memory;
            let as_unit =
                |unit| Quantity::measured(Estimate::new(cycles, cycles * 0.999, cycles * 1.001), unit);
            Point {
                size: Bytes(size as u64),
                pitch: Bytes(64),
                latency: Latency {
                    ns: as_unit(Unit::Nanos),
                    cycles: as_unit(Unit::Cycles),
                    ticks: as_unit(Unit::Ticks),
                },
                min_ns: cycles,
                p05_ns: cycles,
                p95_ns: cycles,
                p05_cycles: Some(cycles),
                blocks: 9,
                voided: 0,
            }
        };
        let main = Curve {
            pattern: Pattern::Random,
            access: Access::Read,
            pages: PageSupply { asked: "thp".to_owned(), share: 1.0 },
            points: (0..=17 * 8).map(point).collect(),
        };
        LatencyCurves { line: Bytes(64), curves: vec![main], single: Vec::new(), pages_refused: Vec::new() }
    }

    #[test]
    fn the_last_cache_is_not_taken_for_memory_whatever_source_tells_of_it() {
        let claim = |level, size| CacheClaim {
            leaf: "4".to_owned(),
            level,
            kind: CacheKind::Unified,
            size,
            line: Some(Bytes(64)),
            sharers: None,
        };
        let told = [(1, Bytes::kib(32)), (2, Bytes::mib(1)), (3, Bytes::mib(16))];
        let by_cpuid = Host { cache_claims: told.map(|(l, s)| claim(l, s)).to_vec(), ..Host::default() };
        for (host, claimed) in [(by_cpuid, Some(1048576.0)), (Host::default(), None)] {
            let levels = levels_of(&curves(), &host, 0);
            let names: Vec<&str> = levels.iter().map(|l| l.name.as_str()).collect();
            assert_eq!(names, ["L1", "L2", "L3", "DRAM"]);
            let cycles: Vec<f64> = levels.iter().filter_map(|l| l.latency.cycles.value()).collect();
            assert!((cycles[2] - 50.0).abs() < 1.0 && cycles[3] > 400.0, "{cycles:?}");
            assert_eq!(levels[1].size_claimed.value(), claimed);
            assert_eq!(
                levels[3].note.as_ref().is_some_and(|n| n.contains("claims no caches")),
                claimed.is_none()
            );
        }
    }
}
