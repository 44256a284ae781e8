//! The map leads somewhere: ARCHITECTURE.md and CONTRIBUTING.md cite files and folders that exist,
//! and a step of a way through the code cites functions that its files have.

use crate::tree::{Text, texts};
use crate::{complaint, none, root};
use regex::Regex;
use std::collections::BTreeSet;
use std::fs;
use std::sync::LazyLock;

const MAPS: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];

static STEP: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\d+\. ").expect("a pattern"));
/// A function, as prose names it: `block`, `Loaded::of`.
static FUNCTION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(?:[A-Z]\w*::)?[a-z][a-z0-9_]*$").expect("a pattern"));
static PATH: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^[\w.-]+/[\w./-]*$").expect("a pattern"));

/// What stands in backquotes in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn gone(file: &Text, exists: &impl Fn(&str) -> bool) -> Vec<String> {
    let lines = file.text.lines().enumerate();
    lines
        .flat_map(|(number, line)| quoted(line).map(move |word| (number, word)))
        .filter(|(_, word)| PATH.is_match(word) && !exists(word))
        .map(|(number, word)| complaint(&file.path, number, &format!("{word} does not exist")))
        .collect()
}

/// Functions that steps name and that none of the step's files has. `source` reads a file.
fn unknown(file: &Text, source: &impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut complaints = Vec::new();
    for (number, line) in file.text.lines().enumerate().filter(|(_, line)| STEP.is_match(line)) {
        let sources: String = quoted(line).filter(|word| PATH.is_match(word)).filter_map(source).collect();
        for word in quoted(line).filter(|word| FUNCTION.is_match(word)) {
            let name = word.rsplit("::").next().unwrap_or(word);
            if !sources.contains(&format!("fn {name}(")) && !sources.contains(&format!("fn {name}<")) {
                complaints.push(complaint(&file.path, number, &format!("no file of this step has '{word}'")));
            }
        }
    }
    complaints
}

/// Whether there is such a file or folder, counted from the top or from a crate's source.
fn is_there(path: &str) -> bool {
    let crates = fs::read_dir(root().join("crates")).expect("crates").flatten();
    root().join(path).exists() || crates.into_iter().any(|it| it.path().join("src").join(path).exists())
}

fn maps() -> Vec<Text> {
    texts().into_iter().filter(|file| MAPS.contains(&file.path.as_str())).collect()
}

#[test]
fn maps_cite_what_exists() {
    let maps = maps();
    assert_eq!(maps.len(), MAPS.len());
    none(&maps.iter().flat_map(|file| gone(file, &is_there)).collect::<Vec<_>>());
}

#[test]
fn steps_name_functions_of_their_files() {
    let source = |path: &str| fs::read_to_string(root().join(path)).ok();
    let maps = maps();
    let steps = |file: &Text| file.text.lines().filter(|line| STEP.is_match(line)).count();
    assert!(maps.iter().map(steps).sum::<usize>() > 40, "the ways through the code were not found");
    none(&maps.iter().flat_map(|file| unknown(file, &source)).collect::<Vec<_>>());
}

#[test]
fn roads_to_nowhere_are_seen() {
    let text = "`a/b.rs` and `c/d`, `--option`, `u32/u64`\n1. `a/b.rs`: `begin`, `Ring::end`, `Quantity`\n";
    let file = Text { path: "ARCHITECTURE.md".to_owned(), text: text.to_owned() };
    let there: BTreeSet<&str> = ["a/b.rs", "u32/u64"].into();
    assert_eq!(gone(&file, &|path| there.contains(path)), ["ARCHITECTURE.md:1: c/d does not exist"]);
    let source = |_: &str| Some("pub fn begin<T>(of: T) {}\n// fn end".to_owned());
    assert_eq!(unknown(&file, &source), ["ARCHITECTURE.md:2: no file of this step has 'Ring::end'"]);
}
