//! The table of levels and the curve that it was read from.

use super::Results;
use crate::figures::table::row;
use crate::figures::{cells, figure, plot, table, trouble};
use records::machine::{Access, Curve, Machine, Pattern, SingleLoads};
use std::fmt::Write;
use units::{Bytes, Quantity};

pub(super) const RESULTS: Results = Results { name: "latency", title: "Latency by level", lines, csv };

fn lines(machine: &Machine, width: usize) -> Option<String> {
    let outcome = machine.experiments.latency.as_ref()?;
    let mut text = String::new();
    if let Some(line) = trouble("latency", Some(outcome)) {
        text.push_str(&format!("  {line}\n"));
    }
    let Some(result) = &outcome.result else { return Some(text) };
    let main = result.curves.iter().find(|c| c.pattern == Pattern::Random && c.access == Access::Read);
    if machine.levels.is_empty() {
        text.push_str("  no level was resolved\n");
    } else {
        let mut rows = vec![row(["", "size", "claimed", "cycles", "ns", "ticks"])];
        for level in &machine.levels {
            rows.push(vec![
                level.name.clone(),
                size(&level.size),
                size(&level.size_claimed),
                figure(&level.latency.cycles),
                figure(&level.latency.ns),
                figure(&level.latency.ticks),
            ]);
        }
        text.push_str(&table::draw(&rows, width));
        for level in &machine.levels {
            if let Some(note) = &level.note {
                text.push_str(&format!("  {}: {note}\n", level.name));
            }
        }
    }
    if let Some(curve) = main {
        text.push('\n');
        text.push_str(&format!(
            "  random reads, {} pages ({:.0}% as asked); ns over size\n",
            curve.pages.asked,
            curve.pages.share * 100.0
        ));
        text.push_str(&plot::log_log(
            &points(curve),
            plot::columns(56, width),
            7,
            |x| Bytes(x.round() as u64).to_string(),
            |y| format!("{y:.1}"),
        ));
    }
    text.push_str(&others(&result.curves, width));
    text.push_str(&single(&result.single, width));
    Some(text)
}

/// What the largest area costs in the other curves.
fn others(curves: &[Curve], width: usize) -> String {
    let mut rows = Vec::new();
    for curve in curves {
        if curve.pattern == Pattern::Random && curve.access == Access::Read && rows.is_empty() {
            rows.push(row(["pattern", "pages", "area", "ns", "cycles"]));
        }
        let Some(point) = curve.points.last() else { continue };
        let pattern = match (curve.pattern, curve.access) {
            (_, Access::ReadModifyWrite) => "random, lines written",
            (Pattern::Random, _) => "random",
            (Pattern::Windowed, _) => "random in 64 KiB windows",
            (Pattern::Forward, _) => "forward",
            (Pattern::Backward, _) => "backward",
            (Pattern::Stride, _) => "stride",
        };
        rows.push(vec![
            pattern.to_owned(),
            curve.pages.asked.clone(),
            point.size.to_string(),
            figure(&point.latency.ns),
            figure(&point.latency.cycles),
        ]);
    }
    if rows.len() > 2 { format!("\n{}", table::draw(&rows, width)) } else { String::new() }
}

/// Most loads, and the slowest ones.
fn single(levels: &[SingleLoads], width: usize) -> String {
    if levels.is_empty() {
        return String::new();
    }
    let mut rows = vec![row(["single loads, ns", "area", "half below", "99% below", "99.9% below", "loads"])];
    for level in levels {
        rows.push(vec![
            level.level.clone(),
            level.area.to_string(),
            figure(&level.p50.ns),
            figure(&level.p99.ns),
            figure(&level.p999.ns),
            level.shots.to_string(),
        ]);
    }
    format!("\n{}", table::draw(&rows, width))
}

fn points(curve: &Curve) -> Vec<(f64, f64)> {
    curve.points.iter().filter_map(|p| Some((p.size.0 as f64, p.latency.ns.value()?))).collect()
}

fn size(quantity: &Quantity) -> String {
    match quantity.estimate() {
        Some(e) if e.lo == e.hi => Bytes(e.value as u64).to_string(),
        Some(_) => quantity.brief(),
        None => "-".to_owned(),
    }
}

/// Latency over size, all curves in one table.
fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.latency.as_ref()?.result.as_ref()?;
    let mut text = String::from(
        "pattern,access,pages,size_bytes,pitch_bytes,ns,ns_lo,ns_hi,cycles,cycles_lo,cycles_hi,ticks,ticks_lo,ticks_hi,\
         min_ns,p05_ns,p95_ns,blocks,voided\n",
    );
    for curve in &result.curves {
        let (pattern, access) = (curve.pattern.word(), curve.access.word());
        for p in &curve.points {
            let _ = writeln!(
                text,
                "{pattern},{access},{},{},{},{},{},{},{},{},{},{},{}",
                curve.pages.asked,
                p.size.0,
                p.pitch.0,
                cells(&p.latency.ns),
                cells(&p.latency.cycles),
                cells(&p.latency.ticks),
                p.min_ns,
                p.p05_ns,
                p.p95_ns,
                p.blocks,
                p.voided
            );
        }
    }
    Some(text)
}
