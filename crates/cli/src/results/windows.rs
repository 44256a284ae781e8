//! Time per window over area: a small curve, and how much the largest area costs over the smallest.

use super::Results;
use crate::figures::table::row;
use crate::figures::{cells, figure, plot, table, trouble};
use records::machine::{Machine, WindowCurve};
use std::fmt::Write;
use units::Bytes;

pub(super) const RESULTS: Results = Results { name: "windows", title: "Windows", lines, csv };

fn lines(machine: &Machine, width: usize) -> Option<String> {
    let outcome = machine.experiments.windows.as_ref()?;
    let mut text = trouble("windows", Some(outcome)).map(|l| format!("  {l}\n")).unwrap_or_default();
    let Some(result) = &outcome.result else { return Some(text) };
    if let Some(curve) = result.curves.first() {
        let points: Vec<(f64, f64)> =
            curve.points.iter().filter_map(|p| Some((p.area.0 as f64, p.cost.ns.value()?))).collect();
        text.push_str(&format!("  windows of {}, {} pages; ns over area\n", curve.window, curve.pages.asked));
        text.push_str(&plot::log_log(
            &points,
            plot::columns(56, width),
            5,
            |x| Bytes(x.round() as u64).to_string(),
            |y| format!("{y:.0}"),
        ));
    }
    let mut rows = vec![row(["window", "pages", "smallest area, ns", "largest area, ns"])];
    for curve in &result.curves {
        rows.push(ends(curve));
    }
    text.push_str(&table::draw(&rows, width));
    Some(text)
}

fn ends(curve: &WindowCurve) -> Vec<String> {
    let cost = |p: Option<&records::machine::WindowPoint>| {
        p.map_or("-".to_owned(), |p| format!("{} in {}", figure(&p.cost.ns), p.area))
    };
    let name = if curve.vectorised { format!("{}, vectors", curve.window) } else { curve.window.to_string() };
    vec![name, curve.pages.asked.clone(), cost(curve.points.first()), cost(curve.points.last())]
}

/// Time per window over area.
fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.windows.as_ref()?.result.as_ref()?;
    let mut text = String::from(
        "window_bytes,vectorised,pages,area_bytes,ns,ns_lo,ns_hi,cycles,cycles_lo,cycles_hi,ticks,ticks_lo,ticks_hi,\
         blocks,voided\n",
    );
    for curve in &result.curves {
        for p in &curve.points {
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{},{}",
                curve.window.0,
                curve.vectorised,
                curve.pages.asked,
                p.area.0,
                cells(&p.cost.ns),
                cells(&p.cost.cycles),
                cells(&p.cost.ticks),
                p.blocks,
                p.voided
            );
        }
    }
    Some(text)
}
