//! Names of items say what they are: a primary, a guest, a process; none is named by 'who'.

use crate::tree::{Text, texts_ending};
use crate::{complaint, none};
use regex::Regex;
use std::sync::LazyLock;

static PRONOUN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(r"\b(?:[a-zA-Z0-9]\w*_)?", "(?:who|whom|Who|Whom|WHO)", r"(?:_\w+)?\b"))
        .expect("a pattern")
});

/// The code of a line, without comments and what stands in quotes, roughly.
fn code_of(line: &str) -> String {
    let unquoted: String = line.replace("\\\"", "").split('"').step_by(2).collect();
    unquoted.split("//").next().unwrap_or_default().to_owned()
}

fn complaints(file: &Text) -> Vec<String> {
    // The text of a string of several lines is none of ours.
    let mut in_string = false;
    let mut complaints = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        let quotes = line.replace("\\\"", "").replace("'\"'", "").matches('"').count();
        let was_in_string = in_string;
        in_string ^= quotes % 2 == 1;
        if was_in_string || in_string || line.trim_start().starts_with("//") {
            continue;
        }
        if let Some(found) = PRONOUN.find(&code_of(line)) {
            complaints.push(complaint(&file.path, number, &format!("'{}' names no thing", found.as_str())));
        }
    }
    complaints
}

#[test]
fn items_are_named_by_what_they_are() {
    none(&texts_ending(&[".rs"]).iter().flat_map(complaints).collect::<Vec<_>>());
}

#[test]
fn names_by_pronoun_are_seen() {
    let seen = |text: &str| complaints(&Text { path: "x.rs".to_owned(), text: text.to_owned() }).len();
    let pronoun = concat!("w", "ho");
    assert_eq!(seen(&format!("fn {pronoun}_sleeps() {{}}\nlet {pronoun} = 1;\nfn is_{pronoun}() {{}}\n")), 3);
    assert_eq!(seen(&format!("// {pronoun} sleeps\nlet whole = \"{pronoun}\";\nlet whose = 2;\n")), 0);
}
