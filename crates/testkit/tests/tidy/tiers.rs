//! `docs/tests.md` says what is tested in which tier; it names each program, workload, fuzz target
//! and part of the command line's tests that exists, and no other in the tables that list them.

use crate::tree::texts;
use crate::{none, root};
use std::collections::BTreeSet;
use std::path::Path;

/// Folders whose files (with these extensions) are named by their stems.
const NAMED: &[(&str, &[&str])] = &[
    ("programs/rewriter/", &["c", "cpp"]),
    ("programs/real/", &["sh"]),
    ("programs/harvest/", &["c", "sh"]),
    ("programs/debug/", &["c", "gdb"]),
    ("programs/sharing/", &["c", "cpp"]),
    ("programs/tries/", &["c", "py"]),
    ("crates/cli/tests/cli/", &["rs"]),
];

fn existing(paths: &[String], targets: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (folder, extensions) in NAMED {
        let files = paths.iter().filter_map(|path| path.strip_prefix(folder)).map(Path::new);
        let files = files.filter(|file| {
            file.components().count() == 1
                && file.extension().is_some_and(|e| extensions.iter().any(|known| e == *known))
        });
        let stems = files.filter_map(|file| Some(file.file_stem()?.to_string_lossy().into_owned()));
        names.extend(stems.filter(|stem| *folder != "crates/cli/tests/cli/" || stem != "main"));
    }
    names.extend(
        targets.split("name: \"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned),
    );
    names
}

/// What stands alone in backquotes in the rows of tables, and might name a program.
fn named(document: &str) -> BTreeSet<String> {
    let rows = document.lines().filter(|line| line.starts_with('|'));
    let quoted = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    quoted.map(str::to_owned).collect()
}

/// Words of tables that are no program's: paths, commands, variables.
fn is_a_name(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c))
}

fn complaints(document: &str, existing: &BTreeSet<String>) -> Vec<String> {
    let named = named(document);
    let missing = existing.difference(&named).map(|name| format!("docs/tests.md: '{name}' has no tier"));
    // Rows of the first table name groups of tests, which stand in other files.
    let groups = ["torture", "soak", "harvested", "bench"];
    let gone = named.difference(existing).filter(|name| is_a_name(name) && !groups.contains(&name.as_str()));
    missing.chain(gone.map(|name| format!("docs/tests.md: '{name}' is not there"))).collect()
}

#[test]
fn each_program_has_its_tier() {
    let paths: Vec<String> = texts().into_iter().map(|text| text.path).collect();
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect(path);
    let existing = existing(&paths, &read("crates/cli/tests/fuzz/targets.rs"));
    assert!(existing.len() > 100, "{existing:?}");
    none(&complaints(&read("docs/tests.md"), &existing));
}

#[test]
fn programs_without_a_tier_are_seen() {
    let paths =
        ["programs/rewriter/a.c", "programs/rewriter/lib/b.c", "programs/real/c.sh"].map(str::to_owned);
    let existing = existing(&paths, "Target { name: \"elf\", make },");
    assert_eq!(existing.iter().collect::<Vec<_>>(), ["a", "c", "elf"]);
    let document = "`a` outside of tables\n| `c`, `elf` | `scripts/x.sh` | `gone` |\n";
    let told = complaints(document, &existing);
    assert_eq!(told, ["docs/tests.md: 'a' has no tier", "docs/tests.md: 'gone' is not there"]);
}
