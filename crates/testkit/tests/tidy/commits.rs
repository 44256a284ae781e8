//! Subjects of commits: `area: what`, in one line of at most 72 characters. An area is a crate, a
//! verb of the command line, a folder at the top of the repository, or one of a few words.
//!
//! Asked of commits behind [`BASE`] only; what was committed before is not rewritten. Without git,
//! or in a clone that does not have it, the rule is skipped, and says so.

use crate::pages::verbs;
use crate::{none, root};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// The last commit before the rule.
const BASE: &str = "8941c16d216dc82801408303916fa24cc0cd4e43";

const MOST: usize = 72;

const WORDS: &[&str] =
    &["all", "architecture", "build", "changelog", "ci", "glossary", "house", "readme", "tests"];

/// Names of folders in a folder.
fn folders(of: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(root().join(of)).expect(of).flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn areas() -> BTreeSet<String> {
    let words = WORDS.iter().map(|word| (*word).to_owned());
    folders("crates").into_iter().chain(folders(".")).chain(verbs()).chain(words).collect()
}

/// What is wrong with a subject.
fn wrong(subject: &str, areas: &BTreeSet<String>) -> Option<String> {
    let length = subject.chars().count();
    if length > MOST {
        return Some(format!("'{subject}' has {length} characters; {MOST} are the most"));
    }
    match subject.split_once(": ") {
        Some((area, what)) if areas.contains(area) && !what.trim().is_empty() => None,
        _ => Some(format!("'{subject}' does not begin with 'area: ' (CONTRIBUTING.md lists the areas)")),
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(root()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn subjects_say_area_and_what() {
    if git(&["merge-base", "--is-ancestor", BASE, "HEAD"]).is_none() {
        eprintln!("skipped: subjects of commits: no git, or its history does not reach back to {BASE}");
        return;
    }
    let range = format!("{BASE}..HEAD");
    let log = git(&["log", "--no-merges", "--format=%h %s", &range]).expect("git log");
    let areas = areas();
    let tell = |line: &str| {
        let (commit, subject) = line.split_once(' ').unwrap_or((line, ""));
        wrong(subject, &areas).map(|why| format!("{commit}: {why}"))
    };
    none(&log.lines().filter_map(tell).collect::<Vec<_>>());
}

#[test]
fn other_subjects_are_seen() {
    let areas = areas();
    for area in ["insight", "runtime-abi", "bench", "scripts", "tour", "house", "readme", "ci"] {
        assert_eq!(wrong(&format!("{area}: what was done"), &areas), None);
    }
    for subject in ["what was done", "nowhere: what was done", "Insight: what", "insight:what", "insight: "] {
        assert!(wrong(subject, &areas).is_some_and(|why| why.contains("area")), "{subject}");
    }
    let long = format!("insight: {}", "a".repeat(64));
    assert!(wrong(&long, &areas).is_some_and(|why| why.contains("73 characters")));
}
