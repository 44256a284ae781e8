//! Figures of levels, strides, prefetchers, nodes and crowds.

use crate::evidence::{Evidence, Found, needs, not_identifiable, ratio, result};
use crate::missing::Missing;
use records::machine::{
    Direction, Level, PlacementKind, PrefetchState, Prefetching, Probe, ProbePoint, SiblingPoint, StridePoint,
};
use units::{Quantity, Unit};

fn level<'a>(evidence: &Evidence<'a>, name: &str) -> Result<&'a Level, Missing> {
    let machine = evidence.machine()?;
    result("latency", machine.experiments.latency.as_ref())?;
    match machine.levels.iter().find(|level| level.name == name) {
        Some(level) => Ok(level),
        None => not_identifiable(format!("no {name} was found")),
    }
}

fn size(evidence: &Evidence<'_>, name: &str) -> Found {
    let level = level(evidence, name)?;
    ratio(&level.size, &level.size_claimed)
}

pub(super) fn l1_size(evidence: &Evidence<'_>) -> Found {
    size(evidence, "L1")
}

pub(super) fn l2_size(evidence: &Evidence<'_>) -> Found {
    size(evidence, "L2")
}

pub(super) fn l3_size(evidence: &Evidence<'_>) -> Found {
    size(evidence, "L3")
}

pub(super) fn l3_cycles(evidence: &Evidence<'_>) -> Found {
    Ok(level(evidence, "L3")?.latency.cycles.clone())
}

pub(super) fn memory_over_last_cache(evidence: &Evidence<'_>) -> Found {
    let memory = level(evidence, "DRAM")?;
    let caches = &evidence.machine()?.levels;
    let Some(last) = caches.iter().rev().find(|level| level.name != "DRAM") else {
        return not_identifiable("no cache was found");
    };
    ratio(&memory.latency.ns, &last.latency.ns)
}

/// An access in the largest area, at this part of a line's stride.
fn strided<'a>(
    evidence: &Evidence<'a>,
    direction: Direction,
    lines: (u64, u64),
) -> Result<&'a Quantity, Missing> {
    let stride = result("stride", evidence.machine()?.experiments.stride.as_ref())?;
    let Some(line) = stride.line.value().or_else(|| stride.line_claimed.value()) else {
        return not_identifiable("the size of a line was not resolved");
    };
    let Some(largest) = stride.points.iter().map(|point| point.size).max() else {
        return not_identifiable("no stride was measured");
    };
    let wanted = line as u64 * lines.0 / lines.1;
    let is_it = |p: &&StridePoint| p.size == largest && p.direction == direction && p.stride.0 == wanted;
    match stride.points.iter().find(is_it) {
        Some(point) => Ok(&point.latency.ns),
        None => not_identifiable(format!("a stride of {wanted} bytes was not measured")),
    }
}

pub(super) fn half_a_line(evidence: &Evidence<'_>) -> Found {
    ratio(strided(evidence, Direction::Forward, (1, 2))?, strided(evidence, Direction::Forward, (1, 1))?)
}

pub(super) fn four_lines(evidence: &Evidence<'_>) -> Found {
    ratio(strided(evidence, Direction::Forward, (4, 1))?, strided(evidence, Direction::Forward, (1, 1))?)
}

pub(super) fn two_lines(evidence: &Evidence<'_>) -> Found {
    ratio(strided(evidence, Direction::Random, (1, 1))?, strided(evidence, Direction::Forward, (2, 1))?)
}

fn prefetching<'a>(evidence: &Evidence<'a>) -> Result<&'a Prefetching, Missing> {
    result("prefetch", evidence.machine()?.experiments.prefetch.as_ref())
}

/// Neighbouring lines, ascending, in the largest area under this setting.
fn lines_in_turn(state: &PrefetchState) -> Result<&Quantity, Missing> {
    let largest = state.probes.iter().map(|probe| probe.size).max();
    let is_it = |p: &&ProbePoint| Some(p.size) == largest && p.probe == Probe::Forward { lines: 1 };
    match state.probes.iter().find(is_it) {
        Some(probe) => Ok(&probe.latency.ns),
        None => not_identifiable("neighbouring lines were not measured"),
    }
}

/// Under the setting whose name begins so, over that which was found.
fn under(evidence: &Evidence<'_>, setting: &str) -> Found {
    let prefetching = prefetching(evidence)?;
    let found = prefetching.states.first();
    let set = prefetching.states.iter().find(|state| state.name.starts_with(setting));
    match (set, found) {
        (Some(set), Some(found)) => ratio(lines_in_turn(set)?, lines_in_turn(found)?),
        _ if prefetching.control.switched => {
            needs(&format!("prefetchers with the setting '{setting}', as POWER has"))
        }
        _ => needs(&format!("prefetchers that can be switched ({})", prefetching.control.detail)),
    }
}

pub(super) fn prefetching_off(evidence: &Evidence<'_>) -> Found {
    under(evidence, "all off")
}

pub(super) fn deepest(evidence: &Evidence<'_>) -> Found {
    under(evidence, "depth 7")
}

/// This placement's latency over the local one's.
fn placed(evidence: &Evidence<'_>, kind: PlacementKind) -> Found {
    let numa = evidence.numa()?;
    let of = |kind| numa.placements.iter().find(|placement| placement.kind == kind);
    match (of(kind), of(PlacementKind::Local)) {
        (Some(placed), Some(local)) => ratio(&placed.latency.ns, &local.latency.ns),
        _ => not_identifiable("this placement was not measured"),
    }
}

pub(super) fn distant(evidence: &Evidence<'_>) -> Found {
    placed(evidence, PlacementKind::Remote)
}

pub(super) fn interleaved(evidence: &Evidence<'_>) -> Found {
    placed(evidence, PlacementKind::Interleaved)
}

pub(super) fn crowd(evidence: &Evidence<'_>) -> Found {
    let threads = result("threads", evidence.machine()?.experiments.threads.as_ref())?;
    let in_memory = threads.crowds.iter().filter(|crowd| crowd.within == "DRAM" && crowd.threads > 1);
    match in_memory.max_by_key(|crowd| crowd.threads) {
        Some(crowd) => Ok(as_ratio(&crowd.slowdown)),
        None if evidence.machine()?.host.usable_cpus().len() == 1 => {
            needs("a second CPU: this process may use one")
        }
        None => not_identifiable("no crowd in memory was resolved"),
    }
}

fn as_ratio(quantity: &Quantity) -> Quantity {
    match quantity.clone() {
        Quantity::Resolved { value, lo, hi, basis, disturbed, bound, .. } => {
            Quantity::Resolved { value, lo, hi, unit: Unit::Ratio, basis, disturbed, bound }
        }
        unresolved @ Quantity::Unresolved { .. } => unresolved,
    }
}

/// At three quarters of the first cache: it holds one area of that size, and not two.
pub(super) fn busy_sibling(evidence: &Evidence<'_>) -> Found {
    let machine = evidence.machine()?;
    let Some(smt) = machine.experiments.smt.as_ref().and_then(|outcome| outcome.result.as_ref()) else {
        return evidence.hyperthreads("'gleaner measure smt' measures it");
    };
    let first = machine.host.data_cache_sizes_of(machine.run.cpu).first().and_then(|cache| cache.size);
    let Some(first) = first else {
        return not_identifiable("the host does not say how large its first cache is");
    };
    let away = |point: &SiblingPoint| (point.size.0 as f64 / (0.75 * first.0 as f64)).ln().abs();
    match smt.points.iter().min_by(|a, b| away(a).total_cmp(&away(b))) {
        Some(point) => Ok(as_ratio(&point.slowdown)),
        None => not_identifiable("no size was measured beside the sibling"),
    }
}

pub(super) fn cast_out(evidence: &Evidence<'_>) -> Found {
    let here = evidence.processor()?;
    needs(&format!("POWER7, whose L3 caches take lines that another core's casts out: this is {here}"))
}
