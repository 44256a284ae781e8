//! How many misses overlap, with huge pages and without.

use super::table::row;
use super::{figure, plot, table, trouble};
use records::machine::{Machine, MlpOfPages};
use units::Quantity;

/// A figure of one kind of page.
type Cell = fn(&MlpOfPages) -> String;

pub(super) fn lines(machine: &Machine, width: usize) -> Option<String> {
    let outcome = machine.experiments.mlp.as_ref()?;
    let mut text = trouble("mlp", Some(outcome)).map(|line| format!("  {line}\n")).unwrap_or_default();
    let Some(result) = &outcome.result else { return Some(text) };
    let rows: [(&str, Cell); 9] = [
        ("effective parallelism", |k| figure(&k.effective)),
        ("  without page walks", |k| k.translated.as_ref().map_or(String::new(), |t| figure(&t.effective))),
        ("  against two kept apart by fillers", |k| {
            k.effective_by_gap.as_ref().map_or(String::new(), figure)
        }),
        ("  and 2000 of them, their time included", |k| {
            k.effective_by_far_gap.as_ref().map_or(String::new(), figure)
        }),
        ("  with CPUID for a fence", |k| k.effective_by_cpuid.as_ref().map_or(String::new(), figure)),
        ("chains until throughput stands still", |k| figure(&k.saturation)),
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
        text.push_str(&format!("; an empty shot takes {}\n", figure(&kind.empty.ticks)));
    }
    text
}
