//! The house rules that no compiler checks.
//!
//! To add one: a function from text to complaints, a test that runs it over the repository, and a
//! test that shows it complain. What a rule looks for is put together with `concat!` here, so that
//! it does not find itself.

mod columns;
mod commits;
mod cycles;
mod figures;
mod item_docs;
mod links;
mod map;
mod names;
mod pages;
mod pending;
mod prose;
mod pure;
mod rooms;
mod shell;
mod source;
mod tiers;
mod tree;
mod words;

use std::path::PathBuf;

/// A broken rule: where, and what to do.
fn complaint(file: &str, line: usize, what: &str) -> String {
    format!("{file}:{}: {what}", line + 1)
}

/// Fails with every complaint at once.
#[track_caller]
fn none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

fn root() -> PathBuf {
    gleaner_testkit::root()
}
