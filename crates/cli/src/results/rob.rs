//! How far the core looks ahead: a row for each filler.

use super::Results;
use crate::figures::table::row;
use crate::figures::{cells, figure, table, trouble};
use records::machine::{Machine, RunsOut};
use std::fmt::Write;

pub(super) const RESULTS: Results = Results { name: "rob", title: "Out-of-order window", lines, csv };

fn lines(machine: &Machine, width: usize) -> Option<String> {
    let outcome = machine.experiments.rob.as_ref()?;
    let mut text = trouble("rob", Some(outcome)).map(|line| format!("  {line}\n")).unwrap_or_default();
    let Some(result) = &outcome.result else { return Some(text) };
    text.push_str(&format!(
        "  re-order buffer: {} entries; nops per entry: {}\n",
        figure(&result.entries),
        figure(&result.nops_per_entry)
    ));
    let mut rows = vec![row(["filler", "misses overlap up to", "entries", "limit"])];
    for cliff in &result.cliffs {
        rows.push(vec![
            cliff.filler.replace('_', " "),
            figure(&cliff.gap),
            // The shared buffer's size is told above; here it would look like the filler's own.
            if cliff.runs_out == RunsOut::SharedEntries {
                String::new()
            } else {
                known(&figure(&cliff.capacity))
            },
            cliff.meaning.clone(),
        ]);
    }
    text.push_str(&table::draw(&rows, width));
    Some(text)
}

fn known(figure: &str) -> String {
    if figure == "not resolved" { "-".to_owned() } else { figure.to_owned() }
}

/// The time of a pair of misses over the gap, for every filler.
fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.rob.as_ref()?.result.as_ref()?;
    let mut text = String::from("filler,gap,cycles,cycles_lo,cycles_hi\n");
    for cliff in &result.cliffs {
        for point in &cliff.points {
            let _ = writeln!(text, "{},{},{}", cliff.filler, point.gap, cells(&point.cycles));
        }
    }
    Some(text)
}
