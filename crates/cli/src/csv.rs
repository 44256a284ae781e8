//! Every point of every experiment as comma-separated values: one table an experiment,
//! `DIR/NAME.csv`.

use crate::failure::Refusal;
use crate::{results, save};
use records::machine::Machine;
use std::path::Path;

/// All tables that have a row, by name.
pub(crate) fn of(machine: &Machine) -> Vec<(&'static str, String)> {
    results::in_order().filter_map(|results| Some((results.name, (results.csv)(machine)?))).collect()
}

/// Creates the directory, and refuses, before anything is measured, one that takes no tables.
pub(crate) fn check(directory: &Path) -> Result<(), Refusal> {
    save::directory(directory)?;
    for results in results::in_order() {
        save::check(&directory.join(file(results.name)))?;
    }
    Ok(())
}

/// Writes each table to `DIR/NAME.csv`; those of a stopped run to `DIR/interrupted` if there are
/// tables already.
pub(crate) fn save(machine: &Machine, directory: &Path) -> Result<(), Refusal> {
    let tables = of(machine);
    let there = tables.iter().any(|(name, _)| directory.join(file(name)).exists());
    let apart = machine.run.interrupted && there;
    let directory = if apart { &directory.join("interrupted") } else { directory };
    save::directory(directory)?;
    for (name, table) in tables {
        save::bytes(&directory.join(file(name)), table.as_bytes())?;
    }
    Ok(())
}

fn file(name: &str) -> String {
    format!("{name}.csv")
}
