//! Loads of one hyperthread, alone and beside a busy sibling.

use super::Results;
use crate::figures::table::row;
use crate::figures::{cells, figure, table, trouble};
use records::machine::Machine;
use std::fmt::Write;

pub(super) const RESULTS: Results =
    Results { name: "smt", title: "Beside the core's other hyperthread", lines, csv };

fn lines(machine: &Machine, width: usize) -> Option<String> {
    let outcome = machine.experiments.smt.as_ref()?;
    let mut text = String::new();
    if let Some(result) = &outcome.result {
        let [home, sibling] = result.cpus;
        text.push_str(&format!("  CPU {home}, its sibling CPU {sibling}\n"));
        let mut rows = vec![row(["each", "ns a load alone", "while the sibling loads, too", "ratio"])];
        for point in &result.points {
            rows.push(vec![
                point.size.to_string(),
                figure(&point.alone.ns),
                figure(&point.beside.ns),
                figure(&point.slowdown),
            ]);
        }
        text.push_str(&table::draw(&rows, width));
    }
    text.push_str(&trouble("smt", Some(outcome)).map(|l| format!("  {l}\n")).unwrap_or_default());
    Some(text)
}

fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.smt.as_ref()?.result.as_ref()?;
    let mut text =
        String::from("size_bytes,alone_ns,alone_ns_lo,alone_ns_hi,beside_ns,beside_ns_lo,beside_ns_hi\n");
    for point in &result.points {
        let _ = writeln!(text, "{},{},{}", point.size.0, cells(&point.alone.ns), cells(&point.beside.ns));
    }
    Some(text)
}
