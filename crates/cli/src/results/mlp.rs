//! How many misses overlap, with huge pages and without.

use super::Results;
use crate::figures::table::row;
use crate::figures::{cells, figure, plot, table, trouble};
use records::machine::{Machine, MlpOfPages};
use std::fmt::Write;
use units::{Bytes, Latency, Quantity};

pub(super) const RESULTS: Results = Results { name: "mlp", title: "Memory-level parallelism", lines, csv };

/// A figure of one kind of page.
type Cell = fn(&MlpOfPages) -> String;

fn lines(machine: &Machine, width: usize) -> Option<String> {
    let outcome = machine.experiments.mlp.as_ref()?;
    let mut text = trouble("mlp", Some(outcome)).map(|line| format!("  {line}\n")).unwrap_or_default();
    let Some(result) = &outcome.result else { return Some(text) };
    let rows: [(&str, Cell); 9] = [
        ("effective parallelism", |k| figure(&k.effective)),
        ("  without page walks", |k| k.translated.as_ref().map_or(String::new(), |t| figure(&t.effective))),
        ("  against two misses kept apart by filler instructions", |k| {
            k.effective_by_gap.as_ref().map_or(String::new(), figure)
        }),
        ("  separated by 2000, filler time included", |k| {
            k.effective_by_far_gap.as_ref().map_or(String::new(), figure)
        }),
        ("  with CPUID as the fence", |k| k.effective_by_cpuid.as_ref().map_or(String::new(), figure)),
        ("chains at which throughput saturates", |k| figure(&k.saturation)),
        ("accesses in flight then", |k| figure(&k.sustained)),
        ("ns per access then", |k| figure(&k.per_access.ns)),
        ("ns per access in sequence", |k| figure(&k.line.per_access.ns)),
    ];
    let head = |k: &MlpOfPages| format!("{} ({} pages)", k.combination, k.pages.asked);
    let mut cells = vec![std::iter::once(String::new()).chain(result.kinds.iter().map(head)).collect()];
    for (name, cell) in rows {
        let values: Vec<String> = result.kinds.iter().map(cell).collect();
        if values.iter().any(|v| !v.is_empty()) {
            cells.push(std::iter::once(name.to_owned()).chain(values).collect::<Vec<String>>());
        }
    }
    if result.kinds.is_empty() {
        cells = vec![row(["nothing was measured"])];
    }
    text.push_str(&table::draw(&cells, width));
    for kind in &result.kinds {
        text.push_str(&notes(kind));
    }
    for refused in &result.pages_refused {
        text.push_str(&format!(
            "  {} pages: {}; would help: {}\n",
            refused.pages, refused.why, refused.would_help
        ));
    }
    if let Some(kind) = result.kinds.first() {
        let points: Vec<(f64, f64)> = kind
            .bursts
            .iter()
            .filter_map(|shot| Some((f64::from(shot.accesses), shot.time.ns.value()?)))
            .collect();
        text.push_str(&format!("\n  {}: ns for N independent accesses, over N\n", head(kind)));
        text.push_str(&plot::log_log(
            &points,
            plot::columns(56, width),
            6,
            |x| format!("{x:.0}"),
            |y| format!("{y:.0}"),
        ));
    }
    Some(text)
}

/// What needs a sentence.
fn notes(kind: &MlpOfPages) -> String {
    let mut text = String::new();
    if let Quantity::Unresolved { unresolved } = &kind.effective {
        text.push_str(&format!("  {}: effective parallelism not resolved: {unresolved}\n", kind.combination));
    }
    let line = &kind.line;
    if let (Some(m), Some(c)) = (line.per_access.ticks.value(), line.constant.ticks.value()) {
        text.push_str(&format!("  {}: T(n) = n·{m:.0} + {c:.0} ticks", kind.combination));
        match line.widened.value() {
            Some(w) if w > 0.0 => {
                let numbers: Vec<String> = line.conflict.iter().map(u32::to_string).collect();
                text.push_str(&format!(
                    "; no such line meets all intervals (n = {} contradict each other) unless widened by {w:.1} ticks",
                    numbers.join(", ")
                ));
            }
            _ => text.push_str(&format!(
                " meets all intervals: M {}, C {}",
                figure(&line.per_access.ticks),
                figure(&line.constant.ticks)
            )),
        }
        text.push_str(&format!("; a shot without accesses takes {}\n", figure(&kind.empty.ticks)));
    }
    text
}

/// Every shot and every number of chains, in one table.
fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.mlp.as_ref()?.result.as_ref()?;
    let mut text = String::from(
        "combination,pages,what,accesses,gap,ns,ns_lo,ns_hi,cycles,cycles_lo,cycles_hi,ticks,ticks_lo,ticks_hi,\
         area_bytes\n",
    );
    for kind in &result.kinds {
        let mut line = |what: &str, accesses: u32, gap: u32, area: Bytes, time: &Latency| {
            let _ = writeln!(
                text,
                "{},{},{what},{accesses},{gap},{},{},{},{}",
                kind.combination,
                kind.pages.asked,
                cells(&time.ns),
                cells(&time.cycles),
                cells(&time.ticks),
                area.0
            );
        };
        let area = kind.area;
        line("empty", 0, 0, area, &kind.empty);
        for shot in &kind.bursts {
            line("burst", shot.accesses, 1, area, &shot.time);
        }
        for shot in kind.translated.iter().flat_map(|t| &t.bursts) {
            line("translated burst", shot.accesses, 1, area, &shot.time);
        }
        for shot in &kind.gaps {
            line("gap", 2, shot.gap, area, &shot.time);
        }
        for curve in &kind.curves {
            for shot in &curve.points {
                line("curve", curve.accesses, shot.gap, area, &shot.time);
            }
        }
        for of in &kind.areas {
            for shot in &of.bursts {
                line("burst in area", shot.accesses, 1, of.area, &shot.time);
            }
        }
        for shot in &kind.sequence {
            line("sequence", shot.accesses, 0, area, &shot.time);
        }
        for point in &kind.chains {
            line("chains", point.chains, 0, area, &point.round);
        }
    }
    Some(text)
}
