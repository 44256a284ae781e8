//! The summary of a recipe: how much is gained, by what, and how to have it.

use crate::figures::table::{draw, row};
use records::recipe::{ChangeOutcome, Recipe, TriedChange, Verdict};
use std::fmt::Write;
use units::{Bytes, Estimate, Quantity};

pub(super) fn text(recipe: &Recipe, width: usize) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", first_line(recipe));
    text.push_str(&changes(recipe, width));
    for other in &recipe.others {
        let _ = writeln!(
            text,
            "  with '{}': {}, {} pairs",
            other.arguments.join(" "),
            times(&other.faster),
            other.pairs
        );
    }
    if !recipe.compared.is_empty() && recipe.verdict == Verdict::Faster {
        let _ = writeln!(text, "  the same as without: {}", recipe.compared.join("; "));
    }
    let of = match &recipe.program.counted {
        Some(counted) => format!("phases of one run, whose work was counted {counted},"),
        None => "runs".to_owned(),
    };
    let _ = writeln!(text, "  {} {of} in {}", recipe.runs, took(recipe.seconds));
    let _ = writeln!(text, "  next: {}", next(recipe));
    text
}

fn first_line(recipe: &Recipe) -> String {
    let name = recipe.program.command.first().map_or("the program", String::as_str);
    let number = recipe.tried.iter().filter(|one| one.outcome == ChangeOutcome::Kept).count();
    let of = recipe.tried.iter().filter(|one| !matches!(one.outcome, ChangeOutcome::NotTried { .. })).count();
    match &recipe.verdict {
        Verdict::Faster => format!(
            "{} {} by {number} of {of} changes, {}; {name} stays as it is",
            times(&recipe.faster),
            if is_a_server(recipe) { "the work per CPU second" } else { "as fast" },
            memory(&recipe.memory)
        ),
        Verdict::LeaveIt { why } => format!("leave {name} as it is: {why}"),
        Verdict::NotResolved { why } => {
            let measured =
                recipe.faster.estimate().map_or(String::new(), |_| format!(" ({})", times(&recipe.faster)));
            format!("not resolved whether {name} can be faster{measured}: {why}")
        }
    }
}

fn is_a_server(recipe: &Recipe) -> bool {
    !recipe.program.load.is_empty() || recipe.program.counted.is_some()
}

/// `1.12x [1.09, 1.15]`.
fn times(faster: &Quantity) -> String {
    match faster.estimate() {
        Some(Estimate { value, lo, hi }) => format!("{value:.2}x [{lo:.2}, {hi:.2}]"),
        None => "not resolved".to_owned(),
    }
}

/// `+310 MiB of memory`; nothing where runs differ by more than that.
fn memory(more: &Quantity) -> String {
    /// Less is the noise of one page here and there.
    const LEAST: f64 = (1 << 20) as f64;
    match more.estimate() {
        Some(Estimate { value, lo, hi }) if value.abs() >= LEAST && (lo > 0.0) == (hi > 0.0) => {
            let sign = if value > 0.0 { '+' } else { '-' };
            format!("{sign}{} of memory", Bytes(value.abs().round() as u64))
        }
        _ => "no more memory".to_owned(),
    }
}

fn changes(recipe: &Recipe, width: usize) -> String {
    let of = |one: &TriedChange| {
        let (outcome, why) = match &one.outcome {
            ChangeOutcome::Kept => ("kept", String::new()),
            ChangeOutcome::Dropped { why } => ("dropped", why.clone()),
            ChangeOutcome::NotTried { why } => ("not tried", why.clone()),
        };
        let form = if one.form.is_empty() { String::new() } else { format!(": {}", one.form) };
        let faster = if one.pairs > 1 { times(&one.faster) } else { String::new() };
        row([outcome, &format!("{}{form}", one.says), &faster, &why])
    };
    let rows: Vec<Vec<String>> = recipe.tried.iter().map(of).collect();
    draw(&rows, width)
}

fn took(seconds: f64) -> String {
    if seconds < 100.0 { format!("{seconds:.0} s") } else { format!("{:.1} min", seconds / 60.0) }
}

fn next(recipe: &Recipe) -> String {
    let command = recipe.program.command.join(" ");
    match &recipe.verdict {
        Verdict::Faster => format!(
            "'gleaner run -- {command}' starts it so; 'gleaner speed --show --as env -- {}' says how without Gleaner",
            recipe.program.command.first().map_or("CMD", String::as_str)
        ),
        Verdict::LeaveIt { .. } => {
            format!(
                "'gleaner profile -- {command}' shows which loads it waits for, and what its source could do"
            )
        }
        Verdict::NotResolved { .. } => {
            format!("'gleaner speed --budget 15min -- {command}', when less else runs")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_says_what_is_gained() {
        let fixture = include_bytes!("../../../records/fixtures/recipe.v1.two-changes.json");
        let mut recipe = records::parse::<Recipe>(fixture).unwrap().body;
        let text = super::text(&recipe, 200);
        let first = text.lines().next().unwrap();
        assert_eq!(
            first,
            "1.12x [1.09, 1.15] as fast by 2 of 3 changes, +310 MiB of memory; ./join stays as it is"
        );
        assert!(text.contains("gleaner run -- ./join 400"), "{text}");
        recipe.verdict =
            Verdict::LeaveIt { why: "a run takes 12 ms: most of that is starting it".to_owned() };
        assert!(super::text(&recipe, 200).starts_with("leave ./join as it is: a run takes 12 ms"));
    }
}
