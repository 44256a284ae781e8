//! The recipe record on the page: what makes a program faster without its source, and what was
//! tried in vain.

use crate::parts::{Cell, Out, Table};
use crate::text::escape;
use records::recipe::{ChangeOutcome, Recipe, TriedChange, Verdict};

pub(crate) fn sections(recipe: &Recipe, out: &mut Out) {
    out.section("verdict", "Faster without its source");
    out.say(&format!(
        "<code>{}</code>, on {}.",
        escape(&recipe.program.command.join(" ")),
        escape(&recipe.processor)
    ));
    match &recipe.verdict {
        Verdict::Faster => out.say(&format!(
            "By the changes that are kept, and fresh runs: {} times as fast. Its file stays as it is; <code>gleaner run</code> \
             starts it so.",
            escape(&recipe.faster.brief())
        )),
        Verdict::LeaveIt { why } => out.say(&format!("It is best left as it is: {}.", escape(why))),
        Verdict::NotResolved { why } => out.missing(&format!("Not resolved: {}.", escape(why))),
    }
    if recipe.verdict == Verdict::Faster {
        let mut table = Table::with_head("Fresh runs", &["", "as it is", "with the changes"]);
        table.row(vec![
            Cell::text("time of a run"),
            Cell::quantity(&recipe.without),
            Cell::quantity(&recipe.with),
        ]);
        table.row(vec![
            Cell::text("more memory at its peak"),
            Cell::text(""),
            Cell::quantity(&recipe.memory),
        ]);
        out.table(&table);
    }
    if !recipe.tried.is_empty() {
        out.table(&tried(&recipe.tried));
    }
    if !recipe.others.is_empty() {
        let mut table = Table::with_head("With other arguments", &["arguments", "times as fast", "pairs"]);
        for other in &recipe.others {
            let pairs = Cell::count(other.pairs as u64);
            table.row(vec![Cell::text(&other.arguments.join(" ")), Cell::quantity(&other.faster), pairs]);
        }
        out.table(&table);
    }
    out.say(&format!("Compared with runs as it is: {}.", escape(&recipe.compared.join("; "))));
}

fn tried(all: &[TriedChange]) -> Table {
    let mut table = Table::with_head("Changes", &["change", "outcome", "times as fast", "pairs", "why"]);
    for one in all {
        let (outcome, why) = match &one.outcome {
            ChangeOutcome::Kept => ("kept", ""),
            ChangeOutcome::Dropped { why } => ("dropped", why.as_str()),
            ChangeOutcome::NotTried { why } => ("not tried", why.as_str()),
        };
        let form = if one.form.is_empty() { String::new() } else { format!(": {}", one.form) };
        table.row(vec![
            Cell::html(format!("<div class=\"prose\">{}{}</div>", escape(&one.says), escape(&form))),
            Cell::text(outcome),
            Cell::quantity(&one.faster),
            Cell::count(one.pairs as u64),
            Cell::text(why),
        ]);
    }
    table
}
