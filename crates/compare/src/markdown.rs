//! A comparison as Markdown, for pull requests and tickets.

use crate::comparison::{Against, Compared, Comparison};
use crate::text;
use crate::verdict::Verdict;
use std::fmt::Write;

pub fn markdown(comparison: &Comparison) -> String {
    let mut text = String::new();
    for against in &comparison.against {
        one(&mut text, comparison, against);
    }
    text
}

fn one(text: &mut String, comparison: &Comparison, against: &Against) {
    let [base, new] = [&comparison.base, &against.side].map(|side| escaped(&text::side(side)));
    let _ = writeln!(text, "### {base} against {new}\n");
    let _ = writeln!(text, "**Gate: {}**\n", escaped(&text::gate(comparison, against)));
    for doubt in comparison.base.doubts.iter().chain(&against.side.doubts) {
        let _ = writeln!(text, "- {}", escaped(doubt));
    }
    for difference in &against.environment {
        let [base, new] = [&difference.base, &difference.new].map(|said| escaped(&text::said(said)));
        let _ = writeln!(text, "- {}: {base} → {new}", difference.topic);
    }
    if against.environment.is_empty() {
        text.push_str("- environment: no difference\n");
    }
    text.push_str("\n| figure | base | new | new/base | floor | |\n|---|--:|--:|--:|--:|---|\n");
    let changed = |verdict| matches!(verdict, Verdict::Regressed | Verdict::Improved);
    for figure in against.figures.iter().filter(|figure| figure.headline || changed(figure.verdict)) {
        text.push_str(&row(figure));
    }
    let _ = writeln!(text, "\n{}", escaped(text::rest(against).trim_end()));
    text.push('\n');
}

fn row(figure: &Compared) -> String {
    let mut cells = text::row(figure);
    if matches!(figure.gate, Some(Verdict::Regressed)) {
        cells[0] = format!("**{}**", escaped(&cells[0]));
    } else {
        cells[0] = escaped(&cells[0]);
    }
    format!("| {} |\n", cells.join(" | "))
}

/// What Markdown or its HTML would take for its own.
fn escaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => plain.push_str("&lt;"),
            '&' => plain.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => plain.extend(['\\', c]),
            _ => plain.push(c),
        }
    }
    plain
}
