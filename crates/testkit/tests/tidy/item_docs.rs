//! Docs of items are whole sentences: the first paragraph ends with a full stop, and does not go on
//! with the sentence of the item above.
//!
//! Not for the help of the command line, which clap makes of docs: one line without a stop. A doc
//! may be code alone (`mov rax, [rdi]`) where an item stands for that code; a function does
//! something with it, and says what.

use crate::tree::{Text, texts_ending};
use crate::{complaint, none};
use regex::Regex;
use std::sync::LazyLock;

static END: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"[.:?!…]["”)`*]*$"#).expect("a pattern"));
static CODE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^`[^`]+`").expect("a pattern"));
/// How a sentence of the item above goes on.
static GOES_ON: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(?:and|or|of|but|which|where|with|for|each|doubling) ").expect("a pattern")
});
static HELP: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"#\[(?:arg|command|value)\b|\b(?:Args|Parser|Subcommand|ValueEnum)\b").expect("a pattern")
});

fn is_doc(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("///") && !line.starts_with("////")
}

/// The first paragraph of docs.
fn first_paragraph(docs: &[&str]) -> String {
    let lines = docs.iter().map(|line| line.trim_start().trim_start_matches('/').trim());
    lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

fn is_sentence(text: &str, item: &str) -> bool {
    let is_code = CODE.is_match(text) && !item.contains("fn ");
    (END.is_match(text) || is_code || text.starts_with("```")) && !GOES_ON.is_match(text)
}

fn complaints(file: &Text) -> Vec<String> {
    let lines: Vec<&str> = file.text.lines().collect();
    let mut complaints = Vec::new();
    // The end of the item whose docs are help.
    let mut help_ends: Option<String> = None;
    // Attributes stood in front of the docs, and these are help.
    let mut help_follows = false;
    let mut at = 0;
    while at < lines.len() {
        if help_ends.as_deref() == Some(lines[at]) {
            help_ends = None;
        }
        let begin = at;
        while at < lines.len() && is_doc(lines[at]) {
            at += 1;
        }
        let docs = &lines[begin..at];
        let attributes = at;
        let (mut depth, mut item) = (0, at);
        while item < lines.len() && (depth > 0 || lines[item].trim_start().starts_with("#[")) {
            depth += lines[item].matches('[').count() as i32 - lines[item].matches(']').count() as i32;
            item += 1;
        }
        let is_help = help_follows || HELP.is_match(&lines[attributes..item].join(" "));
        let head = lines.get(item).copied().unwrap_or_default();
        help_follows = is_help && docs.is_empty() && is_doc(head);
        if is_help && head.ends_with('{') {
            let indent = &head[..head.len() - head.trim_start().len()];
            help_ends = Some(format!("{indent}}}"));
        }
        let text = first_paragraph(docs);
        if !docs.is_empty() && help_ends.is_none() && !is_help && !is_sentence(&text, head) {
            complaints.push(complaint(&file.path, begin, "this doc is not a sentence of its own"));
        }
        at = item.max(begin + 1);
    }
    complaints
}

#[test]
fn docs_are_sentences() {
    none(&texts_ending(&[".rs"]).iter().flat_map(complaints).collect::<Vec<_>>());
}

#[test]
fn fragments_are_seen() {
    let seen = |text: &str| complaints(&Text { path: "x.rs".to_owned(), text: text.to_owned() }).len();
    assert_eq!(seen("/// Between two polls,\nconst A: u32 = 1;\n/// and at most.\nconst B: u32 = 2;\n"), 2);
    assert_eq!(seen("/// Whole, over\n/// two lines.\n///\n/// More\n#[inline]\npub fn f() {}\n"), 0);
    assert_eq!(seen("/// `mov rax, rbx`\npub fn f() {}\n/// `mov rax, rbx`\nconst A: u8 = 1;\n"), 1);
    assert_eq!(
        seen(
            "#[derive(\n    Args\n)]\n/// Help\nstruct A {\n    /// Help\n    a: u8,\n}\n/// No help\nfn f() {}\n"
        ),
        1
    );
    assert_eq!(seen("/// Help\n#[derive(Debug, Args)]\nstruct A {\n    /// Help\n    a: u8,\n}\n"), 0);
}
