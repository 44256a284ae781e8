//! Comments are no wider than a page: 100 columns. A line of prose beside code is read with the
//! code in view.
//!
//! The rule is not for documents, whose tables and addresses are long, nor for a line that is one
//! long word (an address, a path). Directives of test programs (`//# word: value`, `#: word`) may
//! be wider, too: a test reads each up to the end of its line.

use crate::pending::unlisted;
use crate::tree::{Text, texts};
use crate::{complaint, none};
use std::collections::BTreeMap;

const MOST: usize = 100;

/// What comments begin with in a file of this kind; nothing where no rule is.
fn signs(file: &Text) -> &'static [&'static str] {
    let is = |endings: &[&str]| endings.iter().any(|ending| file.is(ending));
    if is(&["rs"]) {
        &["//"]
    } else if is(&["c", "cc", "cpp", "h", "S", "s"]) {
        &["//", "/*", "* "]
    } else if is(&["sh", "py", "toml", "gdb"]) || file.path == "Makefile" || file.path == ".ci/run" {
        &["#"]
    } else {
        &[]
    }
}

fn is_too_wide(line: &str, signs: &[&str]) -> bool {
    let text = line.trim_start();
    let Some(sign) = signs.iter().find(|sign| text.starts_with(**sign)) else { return false };
    if text.starts_with("//# ") || text.starts_with("#: ") {
        return false;
    }
    let prose = text[sign.len()..].trim_start_matches(['/', '!', '*', '#']).trim();
    line.chars().count() > MOST && prose.contains(' ')
}

fn complaints(file: &Text) -> Vec<String> {
    let signs = signs(file);
    let wide = file.text.lines().enumerate().filter(|(_, line)| is_too_wide(line, signs));
    let tell = |(number, line): (usize, &str)| {
        let columns = line.chars().count();
        complaint(&file.path, number, &format!("a comment of {columns} columns; {MOST} are the most"))
    };
    wide.map(tell).collect()
}

#[test]
fn comments_are_no_wider_than_a_page() {
    let offenders: BTreeMap<String, Vec<String>> = texts()
        .iter()
        .map(|file| (file.path.clone(), complaints(file)))
        .filter(|(_, complaints)| !complaints.is_empty())
        .collect();
    none(&unlisted("columns.txt", &offenders, false));
}

#[test]
fn wide_comments_are_seen() {
    let wide = format!("    /// {}", "word ".repeat(20));
    assert!(is_too_wide(&wide, &["//"]) && is_too_wide(&wide.replace("///", "#"), &["#"]));
    assert!(!is_too_wide(&wide.replace("///", "let"), &["//"]), "code is for rustfmt");
    assert!(!is_too_wide(&format!("// {}", "word ".repeat(18)), &["//"]));
    assert!(!is_too_wide(&wide.replace("///", "//#"), &["//"]), "a directive");
    assert!(!is_too_wide(&format!("// https://{}", "a".repeat(120)), &["//"]), "one word");
    let file = |path: &str| Text { path: path.to_owned(), text: wide.replace("///", "#") };
    assert_eq!(complaints(&file(".ci/run")).len(), 1);
    assert_eq!(complaints(&file("README.md")).len(), 0);
}
