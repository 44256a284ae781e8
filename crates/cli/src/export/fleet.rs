//! Records of any kind as tables, lines and gauges.

#[cfg(feature = "parquet")]
mod partitions;

use super::inputs::Inputs;
use crate::console::Console;
use crate::failure::Exit;
use crate::save;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Formats that are text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lines {
    Jsonl,
    Prometheus,
}

/// Text, to this file or to standard output.
pub(super) fn lines(
    format: Lines,
    paths: &[PathBuf],
    file: Option<&Path>,
    console: &Console,
) -> anyhow::Result<Exit> {
    if let Some(path) = file {
        save::check(path)?;
    }
    let mut inputs = Inputs::new(paths);
    let mut text = String::new();
    let mut superseded = Vec::new();
    match format {
        Lines::Jsonl => inputs.each(|_, source| {
            let lines = export::fleet::lines(&source);
            // What goes to a pipe need not wait for the last record.
            if file.is_some() {
                text.push_str(&lines);
            } else {
                console.stdout(&lines)?;
            }
            Ok(())
        })?,
        Lines::Prometheus => {
            let (mut files, mut sources) = (Vec::new(), Vec::new());
            inputs.each(|file, source| {
                files.push(file.display().to_string());
                sources.push(source);
                Ok(())
            })?;
            let gauges = export::fleet::gauges(&sources);
            superseded = not_written(&gauges.superseded, &files);
            text = gauges.text;
        }
    }
    match file {
        Some(path) => save::bytes(path, text.as_bytes())?,
        None => console.stdout(&text)?,
    }
    told(&inputs, console);
    for line in &superseded {
        console.remark(line);
    }
    Ok(inputs.exit())
}

/// A line for each record in place of which a later one was written, with those that it replaces.
fn not_written(superseded: &[(usize, usize)], files: &[String]) -> Vec<String> {
    let mut by_later: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for &(index, later) in superseded {
        by_later.entry(later).or_default().push(&files[index]);
    }
    let line = |(later, earlier): (usize, Vec<&str>)| {
        let (these, are) = match earlier.len() {
            1 => ("1 record".to_owned(), "is"),
            count => (format!("{count} records"), "are"),
        };
        format!(
            "{these} {are} not written, since {} is a later one of the same kind, host and command, and a series has one \
             value: {} (--format jsonl writes all records)",
            files[later],
            earlier.join(", ")
        )
    };
    by_later.into_iter().map(line).collect()
}

/// What became of the records, where not all of them were taken.
fn told(inputs: &Inputs<'_>, console: &Console) {
    let records = |count: usize| if count == 1 { "1 record".to_owned() } else { format!("{count} records") };
    if inputs.left_out > 0 {
        console.remark(&format!("{} written, {} left out", records(inputs.read), inputs.left_out));
    }
    if inputs.twice > 0 {
        console.remark(&format!("{} named twice: the first of each counts", records(inputs.twice)));
    }
}

/// Tables, below this directory.
#[cfg(feature = "parquet")]
pub(super) fn parquet(paths: &[PathBuf], directory: &Path, console: &Console) -> anyhow::Result<Exit> {
    save::directory(directory)?;
    let mut inputs = Inputs::new(paths);
    let mut tables = partitions::Tables::new(directory);
    inputs.each(|_, source| tables.add(&source))?;
    tables.write()?;
    told(&inputs, console);
    if inputs.read > 0 {
        console.remark(&tables.summary());
    }
    Ok(inputs.exit())
}

#[cfg(not(feature = "parquet"))]
pub(super) fn parquet(_paths: &[PathBuf], _directory: &Path, _console: &Console) -> anyhow::Result<Exit> {
    let why = "this gleaner was built without Parquet";
    let help =
        "packages have it, and so has a build with '--features parquet'; --format jsonl has the same rows";
    Err(crate::failure::Refusal::not_possible_here("--parquet", why).would_help(help).into())
}
