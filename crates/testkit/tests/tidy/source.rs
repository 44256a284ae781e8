//! Rules for code: size, `unsafe`, exceptions to lints, what is unfinished.

use crate::tree::{texts, texts_ending};
use crate::{complaint, none, root};
use std::fs;

const MOST_LINES: usize = 600;

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// The line without its trailing comment and without what stands in quotes, roughly.
fn code_of(line: &str) -> String {
    if is_comment(line) {
        return String::new();
    }
    let unquoted: String = line.replace("\\\"", "").split('"').step_by(2).collect();
    unquoted.split("//").next().unwrap_or_default().to_owned()
}

/// Each `unsafe` has a reason on its line, or in the comment above its statement.
fn unexplained_unsafe(file: &str, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let explains = |line: &str| line.contains("SAFETY:") || line.contains("# Safety");
    let mut complaints = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let code = code_of(line);
        let uses = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "unsafe trait"];
        // `unsafe fn(…)` is the type of a function, and nothing happens there.
        if !uses.iter().any(|u| code.contains(u)) || code.contains("fn(") || explains(line) {
            continue;
        }
        let above = lines[..number].iter().rev().take_while(|line| {
            let line = line.trim_end();
            is_comment(line)
                || line.trim_start().starts_with('#')
                || !line.ends_with([';', '{', '}']) && !line.is_empty()
        });
        if !above.into_iter().any(|line| explains(line)) {
            complaints.push(complaint(file, number, "unsafe without a SAFETY: line above"));
        }
    }
    complaints
}

/// An exception to a lint says why.
fn unexplained_exceptions(file: &str, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut complaints = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let start = line.trim_start();
        let exception =
            ["#[allow(", "#![allow(", "#[expect(", "#![expect("].iter().any(|a| start.starts_with(a));
        let whole = lines[number..].iter().take(8).take_while(|l| !l.trim().is_empty());
        let attribute: Vec<&str> = whole
            .scan(false, |over, l| {
                let was = *over;
                *over = l.contains(")]");
                (!was).then_some(*l)
            })
            .collect();
        let attribute = attribute.join("\n");
        if exception && !attribute.contains("reason = ") && !attribute.contains("//") {
            complaints.push(complaint(file, number, "an exception to a lint without its reason"));
        }
    }
    complaints
}

/// The same in the table for the whole workspace.
fn unexplained_in_table(manifest: &str) -> Vec<String> {
    let mut in_lints = false;
    let mut complaints = Vec::new();
    for (number, line) in manifest.lines().enumerate() {
        if line.starts_with('[') {
            in_lints = line.starts_with("[workspace.lints");
        }
        if in_lints && line.contains("\"allow\"") && !line.contains('#') {
            complaints.push(complaint("Cargo.toml", number, "an exception to a lint without its reason"));
        }
    }
    complaints
}

fn unfinished(file: &str, text: &str) -> Vec<String> {
    let words = [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("dbg", "!(")];
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| words.iter().any(|word| code_of(line).contains(word)))
        .map(|(number, _)| complaint(file, number, "unfinished, or left from debugging"))
        .collect()
}

#[test]
fn files_stay_small() {
    let long: Vec<String> = texts_ending(&[".rs", ".c", ".cc", ".h", ".S", ".sh", ".py"])
        .iter()
        .filter(|t| t.text.lines().count() > MOST_LINES)
        .map(|t| format!("{}: {} lines; {MOST_LINES} are the most: split it", t.path, t.text.lines().count()))
        .collect();
    none(&long);
}

#[test]
fn rust_keeps_the_rules() {
    let mut complaints = Vec::new();
    for file in texts_ending(&[".rs"]) {
        complaints.extend(unexplained_unsafe(&file.path, &file.text));
        complaints.extend(unexplained_exceptions(&file.path, &file.text));
        complaints.extend(unfinished(&file.path, &file.text));
    }
    complaints
        .extend(unexplained_in_table(&fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml")));
    none(&complaints);
}

#[test]
fn no_path_of_one_machine_is_written_down() {
    let places = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/tm", "p/q")];
    let mut complaints = Vec::new();
    for file in texts() {
        for (number, line) in file.text.lines().enumerate() {
            for place in places {
                let own = |at: usize| {
                    // `a/home/b` is another path's middle.
                    let before = line[..at].chars().next_back();
                    !before.is_some_and(|c| c.is_alphanumeric() || "_.-}".contains(c))
                };
                if line.match_indices(place).any(|(at, _)| own(at)) {
                    complaints.push(complaint(
                        &file.path,
                        number,
                        &format!("{place} exists on one machine only"),
                    ));
                }
            }
        }
    }
    none(&complaints);
}

#[test]
fn rules_for_code_see_what_they_should() {
    let unsafe_block = "fn f() {\n    let x =\n        unsafe { g() };\n}\n";
    assert_eq!(unexplained_unsafe("x", unsafe_block).len(), 1);
    assert!(
        unexplained_unsafe("x", "    // SAFETY: g asks for nothing.\n    let x =\n        unsafe { g() };\n")
            .is_empty()
    );
    assert_eq!(unexplained_unsafe("x", "// SAFETY: one.\na();\nunsafe { g() };\n").len(), 1);
    assert!(
        unexplained_unsafe("x", "// unsafe { }\n#![forbid(unsafe_code)]\nlet s = \"unsafe {\";\n").is_empty()
    );
    assert!(
        unexplained_unsafe("x", "/// # Safety\n/// Never.\n#[inline]\npub unsafe fn f() {}\n").is_empty()
    );
    assert_eq!(unexplained_exceptions("x", "#[allow(dead_code)]\nfn f() {} // why\n").len(), 1);
    assert!(unexplained_exceptions("x", "#[allow(dead_code)] // for later\n").is_empty());
    assert!(unexplained_exceptions("x", "#[expect(\n    dead_code,\n    reason = \"why\"\n)]\n").is_empty());
    assert_eq!(
        unexplained_in_table("[workspace.lints.clippy]\na = \"allow\"\nb = \"allow\" # why\n").len(),
        1
    );
    assert_eq!(unfinished("x", concat!("let x = dbg", "!(y);\n// a todo", "!() in a comment\n")).len(), 1);
}
