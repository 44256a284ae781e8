//! Fits as text for people.

use crate::bends::{Bend, Curve};
use crate::fit::{Fit, Of, Residual};
use crate::identify::Identifiable;
use crate::walks::Tables;
use std::fmt::Write;
use units::Quantity;

/// A short table for each fit.
pub fn text(fits: &[Fit]) -> String {
    fits.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn one(fit: &Fit) -> String {
    let name = match fit.of {
        Of::Windows => "windows",
        Of::Latency => "latency of dependent loads",
    };
    let vectorised = if fit.vectorised { ", vectorised" } else { "" };
    let mut text = format!("{name}, {} pages{vectorised}: {} levels\n", fit.pages, fit.levels.len());
    for (number, level) in fit.levels.iter().enumerate() {
        let cost = match (fit.of, &level.per_window) {
            (Of::Windows, Some(fixed)) => format!("{} a line + {} a window", show(&level.cost), show(fixed)),
            _ => show(&level.cost),
        };
        // Writing to a `String` does not fail.
        let _ = writeln!(text, "  {}  costs {cost}; up to {}", number + 1, show(&level.size));
    }
    if let Some(walks) = &fit.walks {
        let whose = match walks.tables {
            Tables::Own => "page tables",
            Tables::Host => "the host's page tables",
            Tables::GuestAndHost => "page tables, the guest's and the host's together",
        };
        let (loads, cost) = (show(&walks.loads), show(&walks.cost));
        let _ = writeln!(text, "  walks: {loads} loads of entries of {whose}, an access");
        let _ = writeln!(text, "  they spill as data do, and add {cost} in the largest area");
        let _ = writeln!(text, "  BIC without this term {:+.1}", walks.without);
    }
    let _ = writeln!(text, "  off by {}; areas held back: {}", off(fit.residual), off(fit.held_back));
    if !fit.is_good() {
        let _ = writeln!(text, "  these levels do not describe the curve well: do not predict by them");
    }
    let change = |change: Option<f64>| change.map_or("-".to_owned(), |by| format!("{by:+.1}"));
    let (less, more) = (change(fit.one_level_less), change(fit.one_level_more));
    let _ = writeln!(text, "  BIC with one level less {less}, with one more {more}");
    let Identifiable { parameters, rank, condition, together, remarks } = &fit.identifiable;
    let _ = writeln!(text, "  identifiable: rank {rank} of {parameters}, condition {condition:.0}");
    for pair in together {
        let [a, b] = &pair.parameters;
        let _ = writeln!(text, "  hardly told apart: {a} and {b} (correlation {:.2})", pair.correlation);
    }
    for why in remarks {
        let _ = writeln!(text, "  {why}");
    }
    text
}

/// A few lines for each curve that is no levels.
pub fn bends_text(bends: &[Bend]) -> String {
    bends.iter().map(bend).collect::<Vec<_>>().join("\n")
}

fn bend(bend: &Bend) -> String {
    let (start, slope, on) = (bend.start.brief(), bend.slope.brief(), &bend.on);
    let behind = |what: &str| match &bend.bend {
        Quantity::Resolved { .. } => {
            format!("  from {} on, {} {what}\n", bend.bend.brief(), bend.slope_behind.brief())
        }
        Quantity::Unresolved { unresolved } => format!("  {unresolved}\n"),
    };
    let told = match bend.curve {
        Curve::Sequence => {
            format!("accesses in sequence, {on} pages\n  {slope} an access, and {start} besides\n")
        }
        Curve::Chains => format!(
            "chains side by side, {on} pages\n  {start} a step alone, and {slope} for each chain\n{}",
            behind("for each further one")
        ),
        Curve::Loaded => format!(
            "latency beside traffic ({on})\n  {start} without traffic, and {slope} for each GB/s\n{}",
            behind("for each further one")
        ),
    };
    format!("{told}  off by {}\n", off(bend.residual))
}

/// The value with its interval.
fn show(quantity: &Quantity) -> String {
    match quantity {
        Quantity::Unresolved { unresolved } => format!("- ({unresolved})"),
        resolved @ Quantity::Resolved { .. } => resolved.to_string(),
    }
}

fn off(residual: Residual) -> String {
    format!("{:.1}% in the median, {:.1}% at p90", 100.0 * residual.median, 100.0 * residual.p90)
}
