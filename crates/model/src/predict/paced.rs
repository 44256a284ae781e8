//! An access as fast as it turns out to be: where others fill a cache, what it finds there follows
//! from its pace, and its pace from what it finds.

use super::figure::Figure;
use super::known::Known;
use super::lines::Lines;
use super::neighbours::{Filled, Shared};
use super::{figure_of, work};
use crate::pattern::{Access, Kind};
use records::run::Refused;
use units::Estimate;

/// Rounds until pace and caches agree; each brings them nearer, and hardly any takes ten.
const ROUNDS: usize = 40;
/// They agree when a round changes less than one part in this many.
const AGREED: f64 = 1000.0;

/// Nanoseconds are told by the time for which the cache keeps lines; the interval reaches to what
/// follows if it has a size instead. With that cache as it is then, where it matters.
pub(crate) fn figure(
    known: &Known<'_>,
    access: &Access,
    others: &[Lines],
) -> Result<(Figure, Option<Filled>), Refused> {
    let by_size = figure_of(known, access, others, None)?;
    let drawn = matches!(access.kind, Kind::Rand | Kind::Rmw | Kind::Tree { .. } | Kind::Search);
    let Some(shared) = Shared::of(known).filter(|_| drawn) else { return Ok((by_size, None)) };
    let pace_of = |figure: &Figure| work::added(known, access, figure.clone()).time.value;
    let (mut figure, mut pace) = (by_size.clone(), pace_of(&by_size));
    for _ in 0..ROUNDS {
        figure = figure_of(known, access, others, Some(shared.beside(pace)))?;
        let now = pace_of(&figure);
        let agreed = (now - pace).abs() * AGREED < pace;
        pace = now;
        if agreed {
            break;
        }
    }
    let (time, other) = (figure.time, by_size.time);
    figure.time = Estimate::new(time.value, time.lo.min(other.lo), time.hi.max(other.hi));
    let name = &known.levels[shared.level].name;
    figure.remarks.push(format!(
        "others load {:.1} GB/s into {name}: what comes back within {:.0} ms is found there",
        shared.rate * known.line() as f64,
        shared.lines / shared.rate / 1e6
    ));
    Ok((figure, Some(shared.beside(pace))))
}
