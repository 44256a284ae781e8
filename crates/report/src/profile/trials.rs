//! Changes that were tried: how often as fast the program is with each.

use crate::figure::bars::{Bar, bars};
use crate::parts::{Cell, Figure, Out, Table};
use crate::text::escape;
use records::profile::{Profile, Trial, TrialOutcome};

/// Colours: faster, slower or failed, no difference.
const FASTER: usize = 2;
const WORSE: usize = 1;
const NEITHER: usize = 6;

pub(super) fn trials(profile: &Profile, out: &mut Out) {
    if profile.trials.is_empty() {
        return;
    }
    out.section("trials", "Changes that were tried");
    let head = ["change", "outcome", "times as fast", "without", "with", "by chance", "pairs"];
    let mut table = Table::with_head("Changes, each by whole runs in pairs", &head);
    let mut drawn = Vec::new();
    for trial in &profile.trials {
        let named = named(trial);
        let (outcome, class) = outcome(trial);
        let is_run = trial.rounds > 0;
        let or_none = |cell: Cell| if is_run { cell } else { Cell::text("") };
        table.row(vec![
            Cell::text(&named),
            Cell::html(outcome),
            or_none(Cell::quantity(&trial.faster)),
            or_none(Cell::quantity(&trial.without)),
            or_none(Cell::quantity(&trial.with)),
            or_none(Cell::sorted(format!("{:.1}%", 100.0 * trial.by_chance), trial.by_chance)),
            Cell::count(trial.rounds as u64),
        ]);
        if let Some(value) = trial.faster.estimate().filter(|_| is_run) {
            drawn.push(Bar { name: named, value, shown: format!("{:.2}", value.value), class });
        }
    }
    out.say(
        "The program was run with and without each change, in turns; its output was compared. A difference counts \
         where its interval does not hold 1: 95% for all changes together, by Student's t over the pairs.",
    );
    if drawn.is_empty() {
        out.missing("No change could be tried; the table says why.");
        out.table(&table);
        return;
    }
    let best = profile.trials.iter().filter(|trial| trial.outcome == TrialOutcome::Faster);
    let best = best.max_by(|a, b| speed(a).total_cmp(&speed(b)));
    let title = best.map_or_else(
        || "No change makes it faster beyond chance".to_owned(),
        |trial| format!("{:.2} times as fast: {}", speed(trial), trial.says),
    );
    let svg = bars(&title, "times as fast with the change", &drawn);
    let differs = "another input, another machine, and what else runs beside it.";
    out.figure(Figure { id: "trials", title, svg, table, differs });
}

fn speed(trial: &Trial) -> f64 {
    trial.faster.value().unwrap_or(0.0)
}

fn named(trial: &Trial) -> String {
    if trial.form.is_empty() { trial.says.clone() } else { format!("{}: {}", trial.says, trial.form) }
}

/// What came of it, as HTML, and its colour.
fn outcome(trial: &Trial) -> (String, usize) {
    let (text, class) = match &trial.outcome {
        TrialOutcome::Faster => ("faster".to_owned(), FASTER),
        TrialOutcome::Slower => ("slower".to_owned(), WORSE),
        TrialOutcome::NoDifference => ("no difference beyond chance".to_owned(), NEITHER),
        TrialOutcome::Failed { why } => (format!("not usable: {}", escape(why)), WORSE),
        TrialOutcome::NotTried { why } => (format!("not tried: {}", escape(why)), NEITHER),
    };
    let differs = trial.rounds > 0 && trial.same_output.is_none();
    let note = if differs { "; its output differs from run to run, so it was not compared" } else { "" };
    (format!("{text}{note}"), class)
}
