//! Rooms that ARCHITECTURE.md calls pure take values and bytes, and give back values and bytes:
//! their code outside tests has no clock, no files, no network, no processes and no environment.

use crate::cycles::{code, module_of, paths};
use crate::tree::{Text, texts};
use crate::{complaint, none, rooms};
use regex::Regex;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Parts of the standard library in which input and output lie, wherever in a path.
const OUTSIDE: [&str; 4] = ["fs", "net", "process", "env"];

static CLOCK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b(Instant|SystemTime)\b").expect("a pattern"));
static STANDARD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\bstd::").expect("a pattern"));
/// A module in a file of its own that exists for tests only.
static FOR_TESTS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)^#\[cfg\(test\)\]\n(?:pub\(crate\) )?mod (\w+);").expect("a pattern"));

/// What a file names that no pure room has, each with the number of its line.
fn impurities(text: &str) -> Vec<(usize, String)> {
    let code = code(text);
    let line = |at: usize| code[..at].matches('\n').count();
    let clocks = CLOCK.find_iter(&code).map(|found| (line(found.start()), found.as_str().to_owned()));
    let mut found: Vec<_> = clocks.collect();
    for start in STANDARD.find_iter(&code) {
        for path in paths(&code[start.start()..]) {
            if path.iter().any(|part| OUTSIDE.contains(&part.as_str())) {
                found.push((line(start.start()), path.join("::")));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The files of one room, but for those that are for tests only.
fn files<'t>(room: &str, all: &'t [Text]) -> Vec<&'t Text> {
    let folder = format!("crates/{room}/src/");
    let own: Vec<(&Text, String)> = all
        .iter()
        .filter(|file| file.is("rs"))
        .filter_map(|file| Some((file, module_of(file.path.strip_prefix(&folder)?))))
        .collect();
    let for_tests: BTreeSet<String> = own
        .iter()
        .flat_map(|(file, module)| {
            let above = if module == "crate" { String::new() } else { format!("{module}::") };
            FOR_TESTS.captures_iter(&file.text).map(move |found| format!("{above}{}", &found[1]))
        })
        .collect();
    let is_for_tests = |module: &str| {
        for_tests.iter().any(|test| module == test || module.starts_with(&format!("{test}::")))
    };
    own.into_iter().filter(|(_, module)| !is_for_tests(module)).map(|(file, _)| file).collect()
}

#[test]
fn pure_rooms_have_no_input_and_no_output() {
    let (rooms, all) = (rooms::pure(), texts());
    assert!(rooms.len() > 5, "{rooms:?}");
    let mut complaints = Vec::new();
    for room in &rooms {
        let files = files(room, &all);
        assert!(!files.is_empty(), "crates/{room} has no files");
        for file in files {
            for (number, what) in impurities(&file.text) {
                complaints.push(complaint(
                    &file.path,
                    number,
                    &format!("{what} in a room called pure: let the caller do that"),
                ));
            }
        }
    }
    none(&complaints);
}

#[test]
fn clocks_and_files_in_pure_rooms_are_seen() {
    let names = |text: &str| impurities(text).into_iter().map(|(_, what)| what).collect::<Vec<_>>();
    assert_eq!(impurities("\nuse std::time::Instant;\n"), [(1, "Instant".to_owned())]);
    assert_eq!(names("use std::{collections::BTreeMap, fs};\n"), ["std::fs"]);
    assert_eq!(names("let x = std::env::var(\"X\");\n"), ["std::env::var"]);
    assert_eq!(names("use std::os::unix::fs::FileExt;\n"), ["std::os::unix::fs::FileExt"]);
    assert_eq!(names("//! std::fs::read\nuse std::collections::BTreeMap; // Instant\n"), [""; 0]);
    assert_eq!(names("use std::io;\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n"), [""; 0]);

    let text = |path: &str, text: &str| Text { path: path.to_owned(), text: text.to_owned() };
    let all = [
        text("crates/x/src/lib.rs", "mod a;\n"),
        text("crates/x/src/a/mod.rs", "#[cfg(test)]\nmod tests;\n"),
        text("crates/x/src/a/tests.rs", "use std::fs;\n"),
        text("crates/x/tests/b.rs", "use std::fs;\n"),
        text("crates/y/src/lib.rs", "use std::fs;\n"),
    ];
    let found: Vec<&str> = files("x", &all).into_iter().map(|file| file.path.as_str()).collect();
    assert_eq!(found, ["crates/x/src/lib.rs", "crates/x/src/a/mod.rs"]);
}
