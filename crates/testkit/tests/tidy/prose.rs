//! Rules for comments and documents: what they cite is there.
//!
//! A cited file counts from the repository's top, from the file that cites it, or lies anywhere in
//! the same crate. In a document, output shows files by their name alone: such a one lies anywhere.
//! A file of another project is cited with its name in front, as in
//! `linux:mm/memory.c`, and is not looked for.

use crate::tree::{texts, texts_ending};
use crate::{complaint, none, root};
use regex::Regex;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

static NAME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[\w.*<>{}$/:~-]*[\w*>}]\.(?:rs|md|toml|sh|c|cc|h|S|py|json)\b").expect("a pattern")
});

/// Files named in this line of prose.
fn cited(line: &str) -> Vec<&str> {
    NAME.find_iter(line)
        .map(|found| found.as_str().trim_start_matches("./"))
        .filter(|path| !path.contains(['*', '<', '{', '$', ':', '~']) && !path.starts_with('/'))
        // A record's or report's file in an example is the user's, unless a directory of ours is
        // named with it.
        .filter(|path| path.contains('/') || Path::new(path).extension().is_none_or(|e| e != "json"))
        .collect()
}

fn exists(citing: &str, cited: &str, all: &[String]) -> bool {
    let beside = Path::new(citing).parent().unwrap_or(Path::new("")).join(cited);
    let of_crate = citing.split_inclusive('/').take(2).collect::<String>();
    let end = format!("/{cited}");
    let is_document = Path::new(citing).extension().is_some_and(|e| e == "md");
    let is_shown = is_document && !cited.contains('/');
    root().join(cited).exists()
        || root().join(beside).exists()
        || is_shown && all.iter().any(|path| path.ends_with(&end))
        || all
            .iter()
            .any(|path| citing.starts_with("crates/") && path.starts_with(&of_crate) && path.ends_with(&end))
}

#[test]
fn cited_files_exist() {
    let all: Vec<String> = texts().into_iter().map(|t| t.path).collect();
    let mut complaints = Vec::new();
    for file in texts_ending(&[".rs", ".md", ".toml", "Makefile", ".ci/run"]) {
        // Of records, the files are those of the programs that were looked at.
        let made = ["crates/cli/tests/help/", "bench/records/"];
        let is_made = made.iter().any(|place| file.path.starts_with(place));
        let rust = file.is("rs");
        for (number, line) in file.text.lines().enumerate().filter(|_| !is_made) {
            let prose = if file.is("md") {
                Some(line)
            } else if rust {
                line.trim_start().strip_prefix("//")
            } else {
                line.split_once('#').map(|(_, comment)| comment)
            };
            for path in prose.map(cited).unwrap_or_default() {
                if !exists(&file.path, path, &all) {
                    complaints.push(complaint(&file.path, number, &format!("{path} is not there")));
                }
            }
        }
    }
    none(&complaints);
}

/// What `make` is told to do, in running text or in a block of commands.
fn targets_named(text: &str) -> Vec<(usize, String)> {
    let make = Regex::new(r"(?:^\s*(?:\$ )?|`)make ([a-z][a-z-]*)\b").expect("a pattern");
    text.lines()
        .enumerate()
        .flat_map(|(number, line)| {
            make.captures_iter(line).map(move |c| (number, c[1].to_owned())).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn make_targets_exist() {
    let makefile = fs::read_to_string(root().join("Makefile")).expect("the Makefile");
    let has = |target: &str| makefile.lines().any(|line| line.starts_with(&format!("{target}:")));
    let mut complaints = Vec::new();
    for file in texts_ending(&[".md", ".rs", ".ci/run"]) {
        for (number, target) in targets_named(&file.text).iter().filter(|(_, target)| !has(target)) {
            complaints.push(complaint(
                &file.path,
                *number,
                &format!("the Makefile has no target '{target}'"),
            ));
        }
    }
    none(&complaints);
}

#[test]
fn rules_for_prose_see_what_they_should() {
    assert_eq!(
        cited("see `envelope.rs` and crates/cli/src/show.rs."),
        ["envelope.rs", "crates/cli/src/show.rs"]
    );
    assert!(cited("linux:mm/memory.c, /etc/x.toml, KIND.v*.json, machine.json, {name}.rs").is_empty());
    let all = ["crates/cli/src/show/path.rs".to_owned()];
    assert!(exists("crates/cli/src/main.rs", "path.rs", &all));
    assert!(!exists("crates/lab/src/lib.rs", "path.rs", &all));
    assert!(exists("docs/x.md", "path.rs", &all) && !exists("docs/x.md", "show/gone.rs", &all));
    assert!(exists("README.md", "Cargo.toml", &[]) && !exists("README.md", "gone.md", &[]));
    let text = "```\nmake tour\n```\nRun `make test`; make sure it works.\n";
    assert_eq!(targets_named(text), [(1, "tour".to_owned()), (3, "test".to_owned())]);
}
