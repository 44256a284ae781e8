//! A comparison as text for people.

use crate::comparison::{Against, Compared, Comparison, GateOutcome, SideSummary};
use crate::verdict::Verdict;
use std::fmt::Write;
use units::{Quantity, Unit};

/// Environment first, then headline figures, then those of the others that changed.
pub fn text(comparison: &Comparison) -> String {
    let mut text = format!("{} records\n  base  {}\n", comparison.kind, side(&comparison.base));
    doubts(&mut text, &comparison.base);
    for against in &comparison.against {
        let _ = writeln!(text, "  new   {}", side(&against.side));
        doubts(&mut text, &against.side);
        one(&mut text, comparison, against);
    }
    text
}

pub(crate) fn side(side: &SideSummary) -> String {
    match side.runs.len() {
        1 => format!("{} (1 run)", side.name),
        runs => format!("{} ({runs} runs)", side.name),
    }
}

fn doubts(text: &mut String, side: &SideSummary) {
    for doubt in &side.doubts {
        let _ = writeln!(text, "        ! {doubt}");
    }
}

fn one(text: &mut String, comparison: &Comparison, against: &Against) {
    if against.environment.is_empty() {
        text.push_str("\nEnvironment: no difference\n");
    } else {
        text.push_str("\nEnvironment: differs\n");
        for difference in &against.environment {
            let [base, new] = [&difference.base, &difference.new].map(|words| said(words));
            let _ = writeln!(text, "  {}: {base} -> {new}", difference.topic);
        }
    }
    let (headline, details): (Vec<&Compared>, Vec<&Compared>) =
        against.figures.iter().partition(|figure| figure.headline);
    let changed: Vec<&Compared> = details
        .iter()
        .copied()
        .filter(|figure| matches!(figure.verdict, Verdict::Regressed | Verdict::Improved))
        .collect();
    table(text, "Headline figures", &headline);
    table(text, "Other figures that changed", &changed);
    let rest = rest(against);
    if !rest.is_empty() {
        let _ = write!(text, "\n{rest}");
    }
    let _ = writeln!(text, "\nGate: {}", gate(comparison, against));
}

/// What the runs of a side say of one topic.
pub(crate) fn said(words: &[String]) -> String {
    if words.is_empty() { "not known".to_owned() } else { words.join("; ") }
}

/// The outcome and what it rests on.
pub(crate) fn gate(comparison: &Comparison, against: &Against) -> String {
    let word = match against.gate.outcome {
        GateOutcome::Pass => "pass",
        GateOutcome::Regressed => "regressed",
        GateOutcome::Inconclusive => "inconclusive",
        GateOutcome::Insufficient => "insufficient",
    };
    let percent = 100.0 * comparison.min_effect;
    format!("{word}: {} (effects of {percent}% or more)", against.gate.why)
}

/// Figures that stand in no table, by their number.
pub(crate) fn rest(against: &Against) -> String {
    let mut text = String::new();
    let details = || against.figures.iter().filter(|figure| !figure.headline);
    let count = |verdict| details().filter(|figure| figure.verdict == verdict).count();
    if details().next().is_some() {
        let (same, open) = (count(Verdict::Equivalent), count(Verdict::Inconclusive));
        let _ = writeln!(text, "Other figures: {same} equivalent, {open} inconclusive");
    }
    for (side, only) in [("base", &against.only_in_base), ("new", &against.only_in_new)] {
        if !only.is_empty() {
            let shown = only.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("; ");
            let more = only.len().saturating_sub(SHOWN);
            let more = if more == 0 { String::new() } else { format!("; and {more} more") };
            let _ = writeln!(text, "Only in {side}: {shown}{more}");
        }
    }
    text
}

/// Names of figures in one line.
const SHOWN: usize = 5;

fn table(text: &mut String, title: &str, figures: &[&Compared]) {
    if figures.is_empty() {
        return;
    }
    let head = ["", "base", "new", "new/base", "floor", ""].map(str::to_owned);
    let mut rows = vec![head];
    rows.extend(figures.iter().map(|figure| row(figure)));
    let widths: Vec<usize> =
        (0..6).map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    let _ = writeln!(text, "\n{title}");
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("  {cell:width$}"));
        let _ = writeln!(text, "{}", cells.collect::<String>().trim_end());
    }
}

/// Name, both medians, their ratio, the floor, the verdict.
pub(crate) fn row(figure: &Compared) -> [String; 6] {
    let floor = figure.floor.map_or("-".to_owned(), |floor| format!("{:.1}%", 100.0 * floor));
    let gate = match (figure.gate, figure.verdict) {
        (Some(Verdict::Regressed), _) => " (fails the gate)",
        (Some(_), Verdict::Regressed) => " (not beyond doubt: passes the gate)",
        _ => "",
    };
    let verdict = if figure.base.runs < 2 || figure.new.runs < 2 {
        "one run tells too little".to_owned()
    } else {
        format!("{}{gate}", figure.verdict.word())
    };
    let ratio = ratio(&figure.adjusted);
    [
        figure.name.clone(),
        value(figure.base.median, figure.unit),
        value(figure.new.median, figure.unit),
        ratio,
        floor,
        verdict,
    ]
}

fn value(median: f64, unit: Unit) -> String {
    Quantity::claimed(median, unit).brief()
}

fn ratio(ratio: &Quantity) -> String {
    ratio.estimate().map_or_else(String::new, |r| format!("{:.3} [{:.3}, {:.3}]", r.value, r.lo, r.hi))
}
