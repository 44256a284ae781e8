//! From the main curve to the record's levels: names, sizes beside the host's claims, latencies in three units.

use crate::levels::{self, CurvePoint, Found};
use records::host::{CacheKind, Host};
use records::machine::{Access, Curve, LatencyCurves, Level, Outcome, Pattern, Point};
use units::{Estimate, Latency, Quantity, Unit};

/// Areas this many times as large as the last cache, as the host claims it, lie in memory.
const BEYOND: f64 = 2.0;

/// The levels that the main curve shows.
pub(crate) fn levels_of(outcome: &Outcome<LatencyCurves>, host: &Host, cpu: u32) -> Vec<Level> {
    let Some(curve) = outcome.result.as_ref().and_then(main_curve) else { return Vec::new() };
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
    let caches = host.data_caches_of(cpu);
    let last_cache = caches.last().and_then(|c| c.size.value());
    let memory_from = last_cache.map(|size| size.0 as f64 * BEYOND);
    let found = levels::find(&points, memory_from, (!caches.is_empty()).then_some(caches.len()));
    let n = found.len();
    found
        .iter()
        .enumerate()
        .map(|(i, level)| {
            let memory = i + 1 == n && memory_from.is_none_or(|from| points[level.to].size >= from);
            let name = if memory { "DRAM".to_owned() } else { format!("L{}", i + 1) };
            describe(level, name, memory, &resolved, claimed(host, cpu, i + 1, memory))
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
            None => Quantity::unresolved("the host does not say how much memory it has"),
        };
    }
    let claim = host
        .data_caches_of(cpu)
        .into_iter()
        .find(|c| c.level as usize == number && c.kind != CacheKind::Instruction)
        .and_then(|c| c.size.value());
    match claim {
        Some(size) => Quantity::claimed(size.0 as f64, Unit::Bytes),
        None => Quantity::unresolved("the host claims no such cache"),
    }
}

fn describe(
    level: &Found,
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
        None if memory => Quantity::unresolved("memory has no end that a latency shows"),
        None => Quantity::unresolved("no larger size was measured"),
    };
    let note = if level.slope {
        Some("a slope, not a plateau: the interval is the range over it".to_owned())
    } else {
        shared_note(&size, &size_claimed)
    };
    Level { name, size, size_claimed, latency, note }
}

fn shared_note(size: &Quantity, claimed: &Quantity) -> Option<String> {
    let (size, claimed) = (size.estimate()?, claimed.value()?);
    if size.hi < claimed * 0.9 {
        Some("less than the host claims: shared with others, or partitioned".to_owned())
    } else if size.lo > claimed * 1.1 {
        Some("more than the host claims".to_owned())
    } else {
        None
    }
}
