//! A machine record as text that a person enjoys reading.

use records::machine::Machine;
use std::fmt::Write;
use units::{Bytes, Quantity};

pub(crate) fn of(machine: &Machine, _colour: bool) -> String {
    let mut text = String::new();
    for level in &machine.levels {
        let size = level.size.value().map_or("-".to_owned(), |v| Bytes(v as u64).to_string());
        let _ = writeln!(
            text,
            "{:5} {size:>10}  {}  {}  {}",
            level.name,
            figure(&level.latency.cycles),
            figure(&level.latency.ns),
            level.note.as_deref().unwrap_or("")
        );
    }
    let _ = writeln!(text, "{:?} {:?} {:.1} s", machine.run.grade, machine.run.blocks, machine.run.seconds);
    text
}

fn figure(q: &Quantity) -> String {
    match q {
        Quantity::Resolved { value, lo, hi, unit, .. } => {
            format!("{value:9.3} [{lo:.3}, {hi:.3}] {}", unit.symbol())
        }
        Quantity::Unresolved { unresolved } => format!("not resolved: {unresolved}"),
    }
}
