//! Every point of every experiment as comma-separated values: one table an experiment, first line the column names.
//!
//! To add an experiment: a file in `csv/` with `pub(super) fn csv(&Machine) -> Option<String>`, and a line in [`tables`].

mod bandwidth;
mod c2c;
mod clock;
mod latency;
mod mlp;
mod numa;
mod prefetch;
mod rob;
mod stride;
mod threads;
mod tlb;
mod windows;
mod yields;

pub(crate) use latency::lat_mem_rd;

use crate::failure::Refusal;
use records::machine::Machine;
use std::path::Path;
use units::Quantity;

type Table = fn(&Machine) -> Option<String>;

/// Name and table of each experiment that has one.
fn tables() -> Vec<(&'static str, Table)> {
    vec![
        ("clock", clock::csv),
        ("latency", latency::csv),
        ("tlb", tlb::csv),
        ("mlp", mlp::csv),
        ("rob", rob::csv),
        ("stride", stride::csv),
        ("prefetch", prefetch::csv),
        ("numa", numa::csv),
        ("threads", threads::csv),
        ("bandwidth", bandwidth::csv),
        ("windows", windows::csv),
        ("c2c", c2c::csv),
        ("yield", yields::csv),
    ]
}

/// All tables that there are something to say of, by name.
pub(crate) fn of(machine: &Machine) -> Vec<(&'static str, String)> {
    tables().into_iter().filter_map(|(name, table)| Some((name, table(machine)?))).collect()
}

/// Creates the directory, and refuses, before anything is measured, one that takes no tables.
pub(crate) fn check(directory: &Path) -> Result<(), Refusal> {
    crate::save::directory(directory)?;
    for (name, _) in tables() {
        let path = directory.join(format!("{name}.csv"));
        records::check_writable(&path).map_err(|e| failed(&path, &e.why))?;
    }
    Ok(())
}

fn failed(path: &Path, error: &std::io::Error) -> Refusal {
    Refusal::failed(format!("cannot write {}", path.display()), records::plain(error))
}

/// Writes each table to `DIR/NAME.csv`; those of a stopped run to `DIR/interrupted` if there are tables already.
pub(crate) fn save(machine: &Machine, directory: &Path) -> Result<(), Refusal> {
    let file = |name: &str| format!("{name}.csv");
    let tables = of(machine);
    let there = tables.iter().any(|(name, _)| directory.join(file(name)).exists());
    let apart = machine.run.interrupted && there;
    let directory = if apart { &directory.join("interrupted") } else { directory };
    crate::save::directory(directory)?;
    for (name, table) in tables {
        let path = directory.join(file(name));
        records::write_bytes_atomically(&path, table.as_bytes()).map_err(|e| failed(&path, &e.why))?;
    }
    Ok(())
}

/// `value,lo,hi` of a quantity; three empty cells where it was not resolved.
pub(super) fn cells(quantity: &Quantity) -> String {
    quantity.estimate().map_or(",,".to_owned(), |e| format!("{},{},{}", e.value, e.lo, e.hi))
}
