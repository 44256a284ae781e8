//! Predictions as text for people.

use super::result::{LevelPart, Prediction};
use super::work::COMPUTING;
use std::fmt::Write;
use units::Quantity;

/// The time in all, and for each access of the pattern its own time, levels and data.
pub fn text(prediction: &Prediction) -> String {
    let mut text = String::new();
    // Writing to a `String` does not fail, here and below.
    let _ = writeln!(
        text,
        "{} in all: {} accesses, {} each, on {}",
        prediction.time.brief(),
        count(prediction.accesses),
        prediction.per_access.brief(),
        pages(prediction)
    );
    let several = prediction.parts.len() > 1;
    for part in &prediction.parts {
        let (name, pages) = (&part.pattern, &part.pages);
        let _ = writeln!(text, "\n{name}, {pages} pages");
        if several {
            let (time, each) = (part.time.brief(), part.per_access.brief());
            let _ = writeln!(text, "  {time}: {} accesses, {each} each", count(part.accesses));
        }
        text.push_str(&levels(&part.levels));
        let _ = writeln!(text, "  by {}", part.by);
    }
    if !prediction.remarks.is_empty() {
        text.push('\n');
    }
    for remark in &prediction.remarks {
        let _ = writeln!(text, "{remark}");
    }
    text
}

/// The pages of all accesses, each kind once, and whether nobody asked for them. They stand in the
/// first line, as the time may depend on them more than on all else.
fn pages(prediction: &Prediction) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for part in &prediction.parts {
        if !kinds.contains(&part.pages.as_str()) {
            kinds.push(&part.pages);
        }
    }
    let name = |kind: &&str| if *kind == "4K" { "4K".to_owned() } else { format!("huge ({kind})") };
    let by_default = prediction.parts.iter().any(|part| part.pages_by_default);
    let all = kinds.iter().map(name).collect::<Vec<_>>().join(" and ");
    format!("{all} pages{}", if by_default { " by default" } else { "" })
}

/// How many times as long it takes on another machine.
pub fn compared(here: &Prediction, there: &Prediction) -> Option<Quantity> {
    let (here, there) = (here.time.estimate()?, there.time.estimate()?);
    (here.lo > 0.0).then(|| Quantity::modelled(there.over(here), units::Unit::Ratio))
}

/// Levels with a part below this, of accesses and of time, are left to the JSON.
const LEAST_SHOWN: f64 = 0.01;

fn levels(all: &[LevelPart]) -> String {
    let mut text = String::new();
    let time = |level: &LevelPart| level.time.value().unwrap_or(0.0);
    let sum: f64 = all.iter().map(time).sum();
    let matters = |level: &&LevelPart| {
        time(level) >= LEAST_SHOWN * sum || level.share.value().is_some_and(|share| share >= LEAST_SHOWN)
    };
    let levels: Vec<&LevelPart> = all.iter().filter(matters).collect();
    let width = levels.iter().map(|level| level.level.len()).max().unwrap_or(0);
    for level in levels {
        if level.level == COMPUTING {
            let _ = writeln!(text, "  {COMPUTING:width$}  {} of each", level.time.brief());
            continue;
        }
        let Some(share) = level.share.estimate() else { continue };
        let percent = share.scaled(100.0);
        let interval = if percent.hi - percent.lo < 0.5 {
            String::new()
        } else {
            format!(" [{:.0}, {:.0}]", percent.lo, percent.hi)
        };
        let _ = writeln!(
            text,
            "  {:width$}  {:.0}%{interval} of accesses, {} of each",
            level.level,
            percent.value,
            level.time.brief()
        );
    }
    text
}

fn count(accesses: f64) -> String {
    let whole = format!("{accesses:.0}");
    // Groups of three digits, from the end.
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}
