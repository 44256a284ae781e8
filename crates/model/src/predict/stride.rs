//! `stride(STEP, AREA)`: every STEP bytes, again and again from another line on, until all of the
//! area is accessed: a matrix by columns.
//!
//! The experiment measures loads that wait for each other, with whatever prefetchers do for them.
//! Independent loads overlap besides: they take no longer than that, and no longer than lines at
//! random with as many under way at once.

use super::curve::MeasuredCurve;
use super::figure::{Figure, Source, largest, quotient};
use super::known::{Known, cannot, lacks};
use super::{chase, rand, split};
use crate::pattern::Access;
use records::machine::{Direction, StridePoint};
use records::run::Refused;
use units::{Bytes, Estimate};

pub(crate) fn figure(known: &Known<'_>, access: &Access, step: Bytes) -> Result<Figure, Refused> {
    let stride = known.stride().ok_or_else(|| lacks(access, "latencies over strides", "stride"))?;
    let area = access.area.0 as f64;
    let forward = stride.points.iter().filter(|point| point.direction == Direction::Forward);
    let dependent = surface(forward, area, step.0 as f64)
        .ok_or_else(|| lacks(access, "latencies over strides", "stride"))?;
    let mut remarks = Vec::new();
    let pages = stride.pages.asked.clone();
    if access.options.pages.as_ref().is_some_and(|wanted| *wanted != pages) {
        return Err(cannot(access, format!("strides were measured on {pages} pages only")));
    }
    let line = known.line() as f64;
    let level = known.level_of(area).map(|place| &known.levels[place]);
    let at_once = known.at_once(access, &pages)?;
    let new_lines = (step.0 as f64 / line).min(1.0);
    let mut time = dependent;
    if at_once > 1.0 {
        let faster = known.speedup(at_once, &pages);
        let faster = faster.ok_or_else(|| lacks(access, "figures of loads at once", "mlp"))?;
        let least = known.line_time(area).unwrap_or(Estimate::exact(0.0)).scaled(new_lines);
        let alone = chase::figure(known, access)?.time;
        let ahead = known.ahead(access, &pages);
        if access.options.instructions.is_some() && ahead.is_none() {
            remarks.push(rand::NOT_AHEAD.to_owned());
        }
        let first = ahead.map_or(Estimate::exact(0.0), rand::first_of_group);
        let at_random = rand::waiting(first, alone, quotient(alone, faster));
        time = largest([if at_random.value < dependent.value { at_random } else { dependent }, least]);
    }
    let (sizes, steps) = ranges(stride.points.iter());
    if area > sizes.1 || step.0 as f64 > steps.1 {
        let (size, step) = (Bytes(sizes.1 as u64), Bytes(steps.1 as u64));
        remarks.push(format!(
            "strides were measured up to {step} in areas up to {size}: those figures are used"
        ));
    }
    Ok(Figure {
        time,
        levels: split::whole(level, time),
        source: Source::Curve,
        why: "the measured latencies over strides".to_owned(),
        pages,
        from_memory: if known.is_in_memory(area) { line * new_lines } else { 0.0 },
        waits: 0.0,
        remarks,
    })
}

/// Between the sizes and the strides that were measured.
fn surface<'a>(points: impl Iterator<Item = &'a StridePoint>, area: f64, step: f64) -> Option<Estimate> {
    let points: Vec<_> = points.collect();
    let mut sizes: Vec<u64> = points.iter().map(|point| point.size.0).collect();
    sizes.dedup();
    let of_size = sizes.iter().filter_map(|&size| {
        let same = points.iter().filter(|point| point.size.0 == size);
        let over_steps = same.filter_map(|p| Some((p.stride.0 as f64, p.latency.ns.estimate()?)));
        Some((size as f64, MeasuredCurve::new(over_steps)?.at(step)))
    });
    Some(MeasuredCurve::new(of_size)?.at(area))
}

type Range = (f64, f64);

fn ranges<'a>(points: impl Iterator<Item = &'a StridePoint>) -> (Range, Range) {
    let widen = |range: Range, value: f64| (range.0.min(value), range.1.max(value));
    points.fold(((f64::INFINITY, 0.0), (f64::INFINITY, 0.0)), |(sizes, steps), point| {
        (widen(sizes, point.size.0 as f64), widen(steps, point.stride.0 as f64))
    })
}
