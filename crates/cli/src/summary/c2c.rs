//! Hand-overs between CPUs, as a matrix where they are few, and the price of false sharing.

use super::{figure, table, trouble};
use records::machine::{CacheToCache, Machine};
use table::row;

/// A matrix of more CPUs does not fit on a line.
const MATRIX: usize = 8;

pub(super) fn lines(machine: &Machine) -> Option<String> {
    let outcome = machine.experiments.c2c.as_ref()?;
    let mut text = String::new();
    if let Some(result) = &outcome.result {
        text.push_str(&if result.cpus.len() <= MATRIX { matrix(result) } else { classes(result) });
        if result.pairs.len() < result.pairs_possible {
            text.push_str(&format!(
                "  {} of {} pairs were measured, drawn from each kind\n",
                result.pairs.len(),
                result.pairs_possible
            ));
        }
        for f in &result.false_sharing {
            let what = if f.locked { "atomic additions" } else { "plain additions" };
            text.push_str(&format!(
                "  false sharing, CPU {} and {}, {what}: {} ns apart, {} ns on one line: {} times the price\n",
                f.cpus[0],
                f.cpus[1],
                figure(&f.apart.ns),
                figure(&f.together.ns),
                figure(&f.price)
            ));
        }
        text.extend(result.notes.iter().map(|n| format!("  {n}\n")));
    }
    text.push_str(&trouble("c2c", Some(outcome)).map(|l| format!("  {l}\n")).unwrap_or_default());
    Some(text)
}

fn matrix(result: &CacheToCache) -> String {
    let mut cpus = result.cpus.clone();
    cpus.sort_unstable();
    let mut head = row(["ns a hand-over"]);
    head.extend(cpus.iter().map(|c| format!("CPU {c}")));
    let mut rows = vec![head];
    for &from in &cpus {
        let mut cells = vec![format!("from CPU {from}")];
        cells.extend(cpus.iter().map(|&to| {
            let pair = result.pairs.iter().find(|p| p.from == from && p.to == to);
            pair.map_or_else(|| "-".to_owned(), |p| figure(&p.latency.ns))
        }));
        rows.push(cells);
    }
    table::draw(&rows)
}

fn classes(result: &CacheToCache) -> String {
    let mut rows = vec![row(["ns a hand-over", "median [lowest, highest]", "pairs"])];
    for class in &result.classes {
        rows.push(vec![
            class.nearness.words().to_owned(),
            figure(&class.ns),
            format!("{} of {}", class.pairs_measured, class.pairs_possible),
        ]);
    }
    table::draw(&rows)
}
