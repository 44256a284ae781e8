//! Claims and verdicts as text for people.

use crate::figures::figure;
use crate::figures::table::{draw, row};
use crate::plain::escaped_lines;
use crate::wrap;
use ::reproduce::Ledger;
use experiments::catalogue;
use records::machine::{Effort, Verdict};
use records::reproduction::{ClaimOutcome, ClaimTable, ClaimVerdict, Reproduction};
use serde_json::{Value, json};
use units::{Quantity, Unit};

fn seconds(document: &Ledger, effort: Effort) -> f64 {
    document.seconds(effort, |experiment| Some(catalogue::find(experiment)?.seconds_at(effort)))
}

/// A line each, with what a run takes.
pub(super) fn documents(documents: &[&Ledger], width: usize) -> String {
    let mut rows = vec![row(["document", "claims", "time", "--quick", "memory", "measured there on"])];
    for document in documents {
        rows.push(vec![
            document.name.to_owned(),
            document.claims.len().to_string(),
            format!("{:.0} s", seconds(document, Effort::Normal)),
            format!("{:.0} s", seconds(document, Effort::Quick)),
            document.memory.to_owned(),
            document.machine.to_owned(),
        ]);
    }
    let mut text = draw(&rows, width);
    text.push('\n');
    for document in documents {
        text.push_str(&format!("  {}  {}\n", document.name, document.title));
    }
    text.push_str("\nnext: gleaner reproduce DOCUMENT, or --list for the claims\n");
    wrap::lines(&text, width)
}

/// Each claim of each document, in the document's words.
pub(super) fn claims(documents: &[&Ledger], width: usize) -> String {
    let mut text = String::new();
    for document in documents {
        text.push_str(&format!("{}: {}\n", document.name, document.title));
        for claim in document.claims {
            let paper = claim.paper.map_or_else(String::new, |(lo, hi)| format!("; there {}", range(lo, hi)));
            text.push_str(&format!(
                "  {} ({})\n    \"{}\"\n    {}{paper}; holds if {}\n    {}\n",
                claim.id, claim.place, claim.quote, claim.statistic, claim.shape, claim.command
            ));
        }
    }
    wrap::lines(&text, width)
}

/// The same for programs.
pub(super) fn list_as_json(documents: &[&Ledger], claims: bool) -> Value {
    let of = |document: &&Ledger| {
        let mut value = json!({
            "document": document.name,
            "title": document.title,
            "measured_on": document.machine,
            "seconds": seconds(document, Effort::Normal),
            "seconds_quick": seconds(document, Effort::Quick),
            "memory": document.memory,
        });
        if claims {
            let each = document.claims.iter().map(|claim| {
                json!({
                    "id": claim.id, "place": claim.place, "quote": claim.quote, "statistic": claim.statistic,
                    "paper": claim.paper.map(|(lo, hi)| json!({ "lo": lo, "hi": hi, "unit": claim.unit.symbol() })),
                    "shape": claim.shape.to_string(), "command": claim.command,
                })
            });
            value["claims"] = each.collect();
        }
        value
    };
    json!({ "documents": documents.iter().map(of).collect::<Vec<_>>() })
}

/// The table of verdicts; below it, what each claim lacks, and other readings.
pub(super) fn outcome(found: &Reproduction, width: usize) -> String {
    let mut text = format!("{}\nhere: {}\n", found.title, found.processor);
    if let Some(grade) = &found.grade {
        let word = match grade.verdict {
            Verdict::Quiet => "quiet",
            Verdict::Fair => "fair",
            Verdict::Noisy => "noisy",
        };
        text.push_str(&format!("grade of the measurement: {word}\n"));
    }
    text.push('\n');
    let mut rows = vec![row(["claim", "paper", "here", "here/paper", "holds if", "verdict"])];
    for claim in &found.claims {
        rows.push(vec![
            claim.id.clone(),
            shown(&claim.paper),
            shown(&claim.here),
            shown(&claim.ratio),
            claim.shape.clone(),
            claim.verdict.words().to_owned(),
        ]);
    }
    let mut text = wrap::lines(&text, width) + &draw(&rows, width) + "\n";
    let mut notes = String::new();
    for claim in &found.claims {
        notes.push_str(&note(claim));
    }
    text.push_str(&wrap::lines(&notes, width));
    for printed in &found.tables {
        text.push_str(&table(printed, width));
    }
    text.push_str(&format!("\n{}\n", counts(found)));
    if found.interrupted {
        text.push_str("stopped before it was complete\n");
    }
    escaped_lines(&text)
}

/// A table of the document, with the rows of this machine below its own.
fn table(printed: &ClaimTable, width: usize) -> String {
    let head = ["", "of"].into_iter().map(str::to_owned).chain(printed.columns.iter().cloned());
    let mut rows = vec![head.collect::<Vec<String>>()];
    for found in &printed.rows {
        let of = if found.here { "here" } else { "paper" };
        let cells = found.cells.iter().map(shown);
        rows.push([found.name.clone(), of.to_owned()].into_iter().chain(cells).collect());
    }
    let note = printed.note.as_ref().map_or_else(String::new, |note| format!("  {note}\n"));
    let title = format!("\n{} ({})\n", printed.title, printed.place);
    wrap::lines(&title, width) + &draw(&rows, width) + &wrap::lines(&note, width)
}

/// What was compared, why there is no verdict or another one, and another reading.
fn note(claim: &ClaimOutcome) -> String {
    let mut text = format!("  {} ({}): {}", claim.id, claim.place, claim.statistic);
    if let Some(why) = &claim.why {
        text.push_str(&format!("; {}: {why}", claim.verdict.words()));
    }
    text.push('\n');
    if let Some(reading) = &claim.reading {
        text.push_str(&format!("    read differently: {reading}\n"));
    }
    text
}

fn counts(found: &Reproduction) -> String {
    let of = |verdict| found.claims.iter().filter(|claim| claim.verdict == verdict).count();
    let parts: Vec<String> = ClaimVerdict::ALL
        .into_iter()
        .filter(|&verdict| of(verdict) > 0)
        .map(|verdict| format!("{} {}", of(verdict), verdict.words()))
        .collect();
    format!("{} claims: {}", found.claims.len(), parts.join(", "))
}

fn shown(quantity: &Quantity) -> String {
    match quantity {
        Quantity::Unresolved { .. } => "-".to_owned(),
        Quantity::Resolved { lo, hi, unit, basis: units::Basis::Claimed, .. } => {
            format!("{}{}", range(*lo, *hi), symbol(*unit))
        }
        Quantity::Resolved { unit, .. } => format!("{}{}", figure(quantity), symbol(*unit)),
    }
}

/// Ratios and counts have none.
fn symbol(unit: Unit) -> String {
    match unit {
        Unit::Ratio | Unit::Count => String::new(),
        other => format!(" {}", other.symbol()),
    }
}

/// A number as a document gives it, or two.
fn range(lo: f64, hi: f64) -> String {
    let brief = |x: f64| {
        let rounded = format!("{x:.2}");
        rounded.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if lo == hi { brief(lo) } else { format!("{} - {}", brief(lo), brief(hi)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::reproduction::ClaimRow;

    #[test]
    fn rows_of_here_stand_below_those_of_the_paper() {
        let row = |name: &str, here, cells| ClaimRow { name: name.to_owned(), here, cells };
        let printed = ClaimTable {
            id: "summary".to_owned(),
            title: "Cases".to_owned(),
            place: "table 6.1".to_owned(),
            columns: vec!["effective MLP".to_owned(), "one access".to_owned()],
            rows: vec![
                row(
                    "no restrictions",
                    false,
                    vec![Quantity::claimed(10.0, Unit::Count), Quantity::claimed(200.0, Unit::Cycles)],
                ),
                row(
                    "thp pages",
                    true,
                    vec![Quantity::claimed(20.0, Unit::Count), Quantity::unresolved("no")],
                ),
            ],
            note: Some("placements: needs a second NUMA node".to_owned()),
        };
        assert_eq!(
            table(&printed, 100),
            "\nCases (table 6.1)\n\
             \x20                  of     effective MLP  one access\n\
             \x20 no restrictions  paper  10             200 cycles\n\
             \x20 thp pages        here   20             -\n\
             \x20 placements: needs a second NUMA node\n"
        );
    }

    #[test]
    fn numbers_of_documents_are_brief() {
        assert_eq!(range(10.0, 10.0), "10");
        assert_eq!(range(0.4, 0.5), "0.4 - 0.5");
        assert_eq!(range(187.0 / 192.0, 187.0 / 192.0), "0.97");
    }
}
