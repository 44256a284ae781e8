//! Figures of windows, of the fit to them, of TLBs and nodes.

use crate::evidence::{Evidence, Found, combined, not_identifiable, ratio, resolved, result};
use crate::missing::Missing;
use model::{Fit, Level, Of};
use records::machine::{AfterMiss, PlacementKind, WindowCurve, WindowPoint};
use units::{Bytes, Estimate, Quantity, Unit, middle_sorted};

/// A change of the information criterion by less than this decides nothing.
const DECIDED: f64 = 10.0;

/// The fit to single sign changes, with huge pages where these were had: TLB misses add terms of
/// the same form as caches do.
pub(super) fn fit(evidence: &Evidence<'_>) -> Result<Fit, Missing> {
    let machine = evidence.machine()?;
    result("windows", machine.experiments.windows.as_ref())?;
    let fits = model::fits(machine).into_iter().filter(|fit| fit.of == Of::Windows && !fit.vectorised);
    match fits.min_by_key(|fit| fit.pages == "4K") {
        Some(fit) => Ok(fit),
        None => not_identifiable("too few windows were resolved for a fit"),
    }
}

pub(super) fn levels(evidence: &Evidence<'_>) -> Found {
    let fit = fit(evidence)?;
    let number = fit.levels.len() as f64;
    let undecided = |by: Option<f64>| f64::from(u8::from(by.is_some_and(|by| by < DECIDED)));
    let (less, more) = (undecided(fit.one_level_less), undecided(fit.one_level_more));
    Ok(Quantity::modelled(Estimate::new(number, number - less, number + more), Unit::Count))
}

pub(super) fn held_back(evidence: &Evidence<'_>) -> Found {
    let error = fit(evidence)?.held_back;
    Ok(Quantity::modelled(Estimate::new(error.median, error.median, error.p90), Unit::Ratio))
}

pub(super) fn widths_of_costs(evidence: &Evidence<'_>) -> Found {
    let fit = fit(evidence)?;
    let widths = fit.levels.iter().filter_map(|level| Some(level.cost.estimate()?.relative_half_width()));
    let mut widths: Vec<f64> = widths.filter(|width| width.is_finite()).collect();
    widths.sort_by(f64::total_cmp);
    let (Some(&least), Some(middle), Some(&most)) = (widths.first(), middle_sorted(&widths), widths.last())
    else {
        return not_identifiable("no level has a cost with an interval");
    };
    Ok(Quantity::modelled(Estimate::new(middle, least, most), Unit::Ratio))
}

/// Of the last level, beyond what the first one has: the program's own overhead is part of that.
pub(super) fn delay_per_window(evidence: &Evidence<'_>) -> Found {
    let fit = fit(evidence)?;
    let per_window = |level: &Level| level.per_window.clone();
    let (Some(first), Some(last)) = (fit.levels.first(), fit.levels.last()) else {
        return not_identifiable("the fit has no levels");
    };
    let (Some(own), Some(fixed)) = (per_window(first), per_window(last)) else {
        return not_identifiable("the fit has no costs of windows");
    };
    let delay = combined(&fixed, &own, Estimate::minus)?;
    let line = combined(&last.cost, &first.cost, Estimate::minus)?;
    let ((delay, disturbed), (line, _)) = (resolved(&delay)?, resolved(&line)?);
    if line.lo <= 0.0 {
        return not_identifiable("a line in memory costs no more than one in the first cache");
    }
    let found = Estimate::new(delay.value / line.value, delay.lo / line.hi, delay.hi / line.lo);
    Ok(Quantity::modelled(found, Unit::Ratio).disturbed_by(disturbed))
}

/// Single sign changes in the longest windows of this kind of page up to a page.
pub(super) fn curve<'a>(evidence: &Evidence<'a>, small: bool) -> Result<&'a WindowCurve, Missing> {
    let windows = result("windows", evidence.machine()?.experiments.windows.as_ref())?;
    let fits = |curve: &&WindowCurve| {
        !curve.vectorised && (curve.pages.asked == "4K") == small && curve.window <= Bytes::kib(4)
    };
    match windows.curves.iter().filter(fits).max_by_key(|curve| curve.window) {
        Some(curve) => Ok(curve),
        None => not_identifiable("no windows were measured with such pages"),
    }
}

/// Where the area comes closest to this one.
fn at(curve: &WindowCurve, area: f64) -> Result<&WindowPoint, Missing> {
    let away = |point: &WindowPoint| (point.area.0 as f64 / area).ln().abs();
    match curve.points.iter().min_by(|a, b| away(a).total_cmp(&away(b))) {
        Some(point) => Ok(point),
        None => not_identifiable("no window was measured"),
    }
}

fn largest(curve: &WindowCurve) -> Result<&WindowPoint, Missing> {
    at(curve, f64::MAX)
}

/// Sizes of the first two caches, as the host claims them.
fn caches(evidence: &Evidence<'_>) -> Result<(f64, f64), Missing> {
    let machine = evidence.machine()?;
    let claimed = machine.host.data_cache_sizes_of(machine.run.cpu);
    let sizes: Vec<f64> = claimed.iter().filter_map(|cache| Some(cache.size?.0 as f64)).collect();
    match sizes[..] {
        [first, second, ..] => Ok((first, second)),
        _ => not_identifiable("the host does not say how large its caches are"),
    }
}

pub(super) fn memory_over_second_cache(evidence: &Evidence<'_>) -> Found {
    let curve = curve(evidence, false).or_else(|_| curve(evidence, true))?;
    let (first, second) = caches(evidence)?;
    ratio(&largest(curve)?.cost.ns, &at(curve, (first * second).sqrt())?.cost.ns)
}

pub(super) fn small_over_huge(evidence: &Evidence<'_>) -> Found {
    let (small, huge) = (curve(evidence, true)?, curve(evidence, false)?);
    if small.window != huge.window {
        return not_identifiable("windows of the same size were not measured with both kinds of pages");
    }
    ratio(&largest(small)?.cost.ns, &largest(huge)?.cost.ns)
}

pub(super) fn beyond_256_mib(evidence: &Evidence<'_>) -> Found {
    let curve = curve(evidence, true)?;
    let (from, most) = (Bytes::mib(256), largest(curve)?);
    if most.area < Bytes::mib(512) {
        return not_identifiable(format!("areas end at {} here", most.area));
    }
    ratio(&most.cost.ns, &at(curve, from.0 as f64)?.cost.ns)
}

pub(super) fn tlb_reach(evidence: &Evidence<'_>) -> Found {
    let tlb = result("tlb", evidence.machine()?.experiments.tlb.as_ref())?;
    let first = tlb.kinds.iter().find(|kind| kind.pages.asked == "4K").and_then(|kind| kind.levels.first());
    let Some(first) = first else { return not_identifiable("no TLB was found with small pages") };
    let (entries, disturbed) = resolved(&first.entries)?;
    let reach = entries.scaled(4096.0 / caches(evidence)?.1);
    Ok(Quantity::modelled(reach, Unit::Ratio).disturbed_by(disturbed))
}

pub(super) fn tlb_miss_over_memory(evidence: &Evidence<'_>) -> Found {
    let machine = evidence.machine()?;
    let tlb = result("tlb", machine.experiments.tlb.as_ref())?;
    let small = tlb.kinds.iter().find(|kind| kind.pages.asked == "4K");
    let walk = small.and_then(|kind| kind.levels.iter().find(|level| level.then == AfterMiss::Walk));
    let memory = machine.levels.iter().find(|level| level.name == "DRAM");
    match (walk, memory) {
        (Some(walk), Some(memory)) => ratio(&walk.miss.cycles, &memory.latency.cycles),
        (None, _) => not_identifiable("no page walk was found"),
        (_, None) => not_identifiable("the latency of memory was not resolved"),
    }
}

pub(super) fn other_node(evidence: &Evidence<'_>) -> Found {
    let numa = evidence.numa()?;
    let of = |kind| numa.placements.iter().find(|placement| placement.kind == kind);
    match (of(PlacementKind::Remote), of(PlacementKind::Local)) {
        (Some(remote), Some(local)) => ratio(&remote.latency.ns, &local.latency.ns),
        _ => not_identifiable("these placements were not measured"),
    }
}

pub(super) fn furthest_node(evidence: &Evidence<'_>) -> Found {
    evidence.needs_nodes(3, "three NUMA nodes or more")?;
    let numa = evidence.numa()?;
    let others = numa.matrix.iter().filter(|pair| pair.from == numa.local && pair.to != numa.local);
    let mut others: Vec<&Quantity> = others.map(|pair| &pair.latency.ns).collect();
    let value = |quantity: &&Quantity| quantity.value().unwrap_or(0.0);
    others.sort_by(|a, b| value(a).total_cmp(&value(b)));
    match others[..] {
        [nearest, .., furthest] => ratio(furthest, nearest),
        _ => not_identifiable("fewer than two other nodes were measured"),
    }
}
