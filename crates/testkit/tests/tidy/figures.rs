//! The numbers that the supervisor goes by stand in one table, which gets no longer.

use crate::tree::texts;
use crate::{complaint, none};

const ROOM: &str = "crates/runtime/src/supervisor/";
const TABLE: &str = "crates/runtime/src/supervisor/figures.rs";
/// A new number takes the place of another, or needs a measurement on two machines.
const MOST: usize = 90;

/// Whether a line defines a time, a share or a factor, as opposed to a size or a code of an
/// interface.
fn is_figure(line: &str) -> bool {
    let Some((_, rest)) = line.split_once("const ") else { return false };
    let Some((name, kind)) = rest.split_once(':') else { return false };
    let is_name = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    is_name && (name.ends_with("_NS") || kind.trim_start().starts_with("f64"))
}

#[test]
fn numbers_of_the_supervisor_stand_in_one_table() {
    let texts = texts();
    let of_room = texts.iter().filter(|file| file.path.starts_with(ROOM) && file.path != TABLE);
    let complaints: Vec<String> = of_room
        .flat_map(|file| {
            let lines = file.text.lines().enumerate().filter(|(_, line)| is_figure(line));
            lines.map(|(number, _)| complaint(&file.path, number, "a number outside of figures.rs"))
        })
        .collect();
    none(&complaints);
    let table = texts.iter().find(|file| file.path == TABLE).expect("the table");
    let many = table.text.lines().filter(|line| line.starts_with("pub(crate) const ")).count();
    assert!(many <= MOST, "{TABLE} has {many} numbers; {MOST} are the most");
}

#[test]
fn figures_are_told_from_sizes() {
    assert!(is_figure("const POLL_NS: u64 = 5;") && is_figure("    pub(crate) const PART: f64 = 0.2;"));
    assert!(!is_figure("const STACK: usize = 1 << 17;") && !is_figure("const fn of(ns: f64) -> u64 {"));
}
