//! The tour record on the page: the story of a program that waits for memory, a question after the
//! other, each with the picture of its figures; the records behind it follow on the same page.

use crate::figure::bars::{Bar, bars};
use crate::parts::{Cell, Figure, Out, Table};
use crate::text::{base, cut, escape, figures, percent, quantity, share};
use records::tour::{StepFigure, StepOutcome, Tour, TourStep};
use units::{Estimate, Quantity, Unit};

/// Names of figures must differ, and are fixed text: one for each step that a story may have.
const IDS: [&str; 8] = ["step-1", "step-2", "step-3", "step-4", "step-5", "step-6", "step-7", "step-8"];

const DIFFERS: &str = "other processors, other work on this machine meanwhile, and other compilers.";

/// `names` are those of all records on the page, in their order.
pub(crate) fn sections(tour: &Tour, names: &[String], out: &mut Out) {
    out.section("story", "The story");
    out.say(&format!("On {}, in {}.", escape(&tour.processor), took(tour.seconds)));
    for sentence in &tour.program {
        out.say(&escape(sentence));
    }
    if tour.interrupted {
        out.missing("It was stopped before its end: what follows is what was found until then.");
    }
    for (n, step) in tour.steps.iter().enumerate() {
        let id = IDS.get(n).copied();
        out.section(&format!("step-{}", n + 1), &format!("{}. {}", n + 1, step.title));
        told(step, names, id, out);
    }
    if tour.next.is_empty() {
        return;
    }
    out.section("next", "Next, with a program of your own");
    let next =
        tour.next.iter().map(|n| format!("<code>{}</code>: {}", escape(&n.command), escape(&n.what_for)));
    out.list(&next.collect::<Vec<_>>());
}

fn took(seconds: f64) -> String {
    if seconds < 100.0 { format!("{seconds:.0} seconds") } else { format!("{:.1} minutes", seconds / 60.0) }
}

fn told(step: &TourStep, names: &[String], id: Option<&'static str>, out: &mut Out) {
    out.say(&format!("<code>{}</code>", escape(&step.command)));
    if let StepOutcome::NotRun { why, would_help } = &step.outcome {
        let help =
            would_help.as_ref().map_or(String::new(), |help| format!(" What would help: {}.", escape(help)));
        out.missing(&format!("Not possible here: {}.{help}", escape(why)));
    }
    for sentence in &step.says {
        match sentence.strip_prefix("  ") {
            Some(code) => out.say(&format!("<code>{}</code>", escape(code))),
            None => out.say(&escape(sentence)),
        }
    }
    drawn(step, id, out);
    let place = step.record.as_ref().and_then(|record| names.iter().position(|name| base(name) == record));
    if let Some(place) = place {
        out.say(&format!("<a href=\"#r{}\">All that was found in this step</a>", place + 1));
    }
}

/// The step's figures beside each other; those of another unit than the first are in the table
/// alone.
fn drawn(step: &TourStep, id: Option<&'static str>, out: &mut Out) {
    let shown =
        |figure: &StepFigure| if figure.percent { share(&figure.value) } else { quantity(&figure.value) };
    let mut table = Table::with_head(&step.figures_show, &["what", "figure"]);
    for figure in &step.figures {
        table.row(vec![Cell::text(&figure.name), Cell::html(shown(figure))]);
    }
    let unit = step.figures.iter().find_map(|figure| unit_of(&figure.value));
    let mut all = Vec::new();
    for (n, figure) in step.figures.iter().enumerate() {
        let Some(estimate) = figure.value.estimate().filter(|_| unit_of(&figure.value) == unit) else {
            continue;
        };
        let (value, text): (Estimate, String) = if figure.percent {
            (estimate.scaled(100.0), percent(estimate))
        } else {
            (estimate, figures(estimate))
        };
        all.push(Bar { name: cut(&figure.name, 28), value, shown: text, class: n });
    }
    let (Some(unit), Some(id), false) = (unit, id, all.is_empty()) else {
        out.table(&table);
        return;
    };
    let symbol = if step.figures.iter().all(|figure| figure.percent) { "%" } else { unit.symbol() };
    let svg = bars(&step.figures_show, symbol, &all);
    out.figure(Figure { id, title: step.figures_show.clone(), svg, table, differs: DIFFERS });
}

fn unit_of(quantity: &Quantity) -> Option<Unit> {
    match quantity {
        Quantity::Resolved { unit, .. } => Some(*unit),
        Quantity::Unresolved { .. } => None,
    }
}
