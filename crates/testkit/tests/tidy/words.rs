//! Words that went: they stand at the end of GLOSSARY.md, with what replaces them. Only those are
//! banned that have no ordinary use; the lists of others is for readers.

use crate::pending::unlisted;
use crate::tree::{Text, texts};
use crate::{complaint, none};
use regex::Regex;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What is banned, as a pattern in small letters, and what to write. A space stands for one, or for
/// what joins the words of a name: `_`, `-`. A letter before or behind makes it another word, but
/// for a `*` at that end.
const BANNED: &[(&str, &str)] = &[
    ("*butler*", "supervisor"),
    ("turn(s|ed|ing)? round", "busy-waits"),
    ("belongings", "mappings"),
    ("estates?", "cleanup"),
    ("strays?", "vfork children"),
    ("unmet", "no yield"),
    ("shel(f|ves)", "library links"),
    ("purses?", "time budget"),
    ("stored ahead", "hoisted save"),
    ("left in the slots", "sunk restore"),
    ("somebody", "the primary, a guest, another process: which"),
    ("whoever", "the primary, a guest, another process: which"),
    ("nobody would", "say what does not happen"),
    ("of late", "in the last N s"),
    ("so many", "the count, with its unit"),
    ("room for", "space for; a room is a place in the tree"),
    ("no room", "no space; a room is a place in the tree"),
    ("revisit*", "read again; a visit is a guest's short stay at home"),
];

/// They keep the words of their time, or have to name them.
const EXEMPT: &[&str] = &[
    "bench/records/",
    "crates/records/fixtures/",
    "CHANGELOG.md",
    "GLOSSARY.md",
    "crates/testkit/tests/tidy/words.rs",
    "crates/testkit/tests/tidy/pending/",
];

static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let pattern = |banned: &str| {
        let word = banned.trim_matches('*').replace(' ', r"[ _-]+");
        let before = if banned.starts_with('*') { "" } else { "(?:^|[^a-z])" };
        let behind = if banned.ends_with('*') { "" } else { "(?:$|[^a-z])" };
        Regex::new(&format!("{before}({word}){behind}")).expect("a pattern")
    };
    BANNED.iter().map(|(banned, instead)| (pattern(banned), *instead)).collect()
});

/// All of them at once, also as parts of other words: most lines have none, and that is quickly
/// seen.
static ANY: LazyLock<Regex> = LazyLock::new(|| {
    let words: Vec<String> =
        BANNED.iter().map(|(banned, _)| banned.trim_matches('*').replace(' ', "[ _-]+")).collect();
    Regex::new(&words.join("|")).expect("a pattern")
});

/// Retired words of one line, each with what to write. Records keep what serde is told to write
/// there.
fn retired(line: &str) -> Vec<(String, &'static str)> {
    if line.contains("serde(") || line.contains("alias") {
        return Vec::new();
    }
    let line = line.to_ascii_lowercase();
    if !ANY.is_match(&line) {
        return Vec::new();
    }
    let found = |(pattern, instead): &(Regex, &'static str)| {
        pattern.captures(&line).map(|found| (found[1].to_owned(), *instead))
    };
    PATTERNS.iter().filter_map(found).collect()
}

fn complaints(file: &Text) -> Vec<String> {
    let lines = file.text.lines().enumerate();
    lines
        .flat_map(|(number, line)| {
            let tell = |(word, instead)| complaint(&file.path, number, &format!("'{word}' went: {instead}"));
            retired(line).into_iter().map(tell).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn retired_words_are_not_used() {
    let files = texts().into_iter().filter(|file| !EXEMPT.iter().any(|path| file.path.starts_with(path)));
    let offenders: BTreeMap<String, Vec<String>> = files
        .map(|file| (file.path.clone(), complaints(&file)))
        .filter(|(_, complaints)| !complaints.is_empty())
        .collect();
    none(&unlisted("words.txt", &offenders, false));
}

#[test]
fn retired_words_are_seen() {
    let words = |line: &str| retired(line).into_iter().map(|(word, _)| word).collect::<Vec<_>>();
    assert_eq!(words("fn kill_butlers() {} // Butler"), ["butler"]);
    assert_eq!(words("it waits by turning round"), ["turning round"]);
    assert_eq!(words("let so_many = 3;"), ["so_many"]);
    assert_eq!(words("somebody; of late"), ["somebody", "of late"]);
    assert!(words("a round turn; the real estates' heirs".replace("estates", "est").as_str()).is_empty());
    assert!(words("straying, often late, so few").is_empty());
    assert!(words("#[serde(rename = \"butler\")]").is_empty());
}
