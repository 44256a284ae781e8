//! Links of documents lead somewhere: a relative one to a file or folder that is there, and one
//! with a `#` to a heading of that document.
//!
//! Links to the web are not followed: a test needs no network.

use crate::tree::{Text, texts_ending};
use crate::{complaint, none, root};
use regex::Regex;
use std::path::Path;
use std::sync::LazyLock;

/// Where a link leads: `[text](here)`, `![picture](here "title")`, or the line `[name]: here`.
static LINK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"\]\(<?([^()<>\s]+)>?(?:\s+"[^"]*")?\)|^\s*\[[^\]]+\]:\s+<?([^<>\s]+)"#).expect("a pattern")
});

static CODE: LazyLock<Regex> = LazyLock::new(|| Regex::new("`[^`]*`").expect("a pattern"));

/// The lines of a document that are not within a fenced block, with their numbers.
fn lines_of_prose(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut prose = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            prose.push((number, line));
        }
    }
    prose
}

/// Targets of all links, with the number of their line; those to the web are left out.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in lines_of_prose(text) {
        let without_code = CODE.replace_all(line, "``");
        let links = LINK.captures_iter(&without_code).filter_map(|link| link.get(1).or(link.get(2)));
        let here = links.map(|target| target.as_str()).filter(|target| !is_of_the_web(target));
        found.extend(here.map(|target| (number, target.to_owned())));
    }
    found
}

fn is_of_the_web(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

/// What a heading's link is called: small letters, hyphens for spaces, no punctuation.
fn anchors(text: &str) -> Vec<String> {
    let headings = lines_of_prose(text).into_iter().filter_map(|(_, line)| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len() && title.starts_with(' ')).then(|| title.trim().to_lowercase())
    });
    let kept = |letter: &char| letter.is_alphanumeric() || " -_".contains(*letter);
    headings.map(|title| title.chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

/// What is wrong with a link of the document `citing`, whose text is `text`.
fn fault(citing: &str, text: &str, target: &str) -> Option<String> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = if path.is_empty() {
        root().join(citing)
    } else {
        root().join(Path::new(citing).parent().unwrap_or(Path::new(""))).join(path)
    };
    if path.starts_with('/') || !file.exists() {
        return Some(format!("the link to {target} leads nowhere"));
    }
    if anchor.is_empty() {
        return None;
    }
    let read =
        if path.is_empty() { text.to_owned() } else { std::fs::read_to_string(file).unwrap_or_default() };
    (!anchors(&read).iter().any(|known| known == anchor)).then(|| format!("{target} names no heading there"))
}

fn complaints(file: &Text) -> Vec<String> {
    let wrong = targets(&file.text).into_iter().filter_map(|(number, target)| {
        let what = fault(&file.path, &file.text, &target)?;
        Some(complaint(&file.path, number, &what))
    });
    wrong.collect()
}

#[test]
fn links_of_documents_lead_somewhere() {
    let documents = texts_ending(&[".md"]);
    let links: usize = documents.iter().map(|file| targets(&file.text).len()).sum();
    assert!(links > 50, "{links} links were found");
    none(&documents.iter().flat_map(complaints).collect::<Vec<_>>());
}

#[test]
fn links_that_lead_nowhere_are_seen() {
    let text = "# What `--try` tries\n[a](gone.md), [`b`](docs/gone.md#x)\n```\n[c](gone)\n```\n\
        `[d](gone)` [e](https://example.org/gone) ![f](README.md \"title\")\n[g]: gone.png\n\
        [h](#what---try-tries) [i](#gone) [j](CONTRIBUTING.md#house-rules) [k](docs) [l](/etc)\n";
    let file = Text { path: "README.md".to_owned(), text: text.to_owned() };
    let told = complaints(&file);
    let expected = [
        "README.md:2: the link to gone.md leads nowhere",
        "README.md:2: the link to docs/gone.md#x leads nowhere",
        "README.md:7: the link to gone.png leads nowhere",
        "README.md:8: #gone names no heading there",
        "README.md:8: the link to /etc leads nowhere",
    ];
    assert_eq!(told, expected);
    let below = Text { path: "docs/x.md".to_owned(), text: "[a](../README.md) [b](README.md/x)".to_owned() };
    assert_eq!(complaints(&below), ["docs/x.md:1: the link to README.md/x leads nowhere"]);
}
