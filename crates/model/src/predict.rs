//! How long an access pattern takes on a measured machine: in all, for each access, and which level
//! serves how much of it.
//!
//! Each access is taken to find its own area as earlier passes over it leave the caches. Where the
//! fitted levels describe the machine well enough at that area, they tell the time; else the
//! measured points do, interpolated in the logarithm of the size. Each part says which.
//!
//! To add an access: a file here with a function from [`Known`] and an access to a [`Figure`], and
//! its line in [`figure_of`].

mod chase;
mod combine;
mod curve;
mod figure;
mod held;
mod known;
mod lines;
mod neighbours;
mod paced;
mod rand;
mod remote;
mod repeated;
mod result;
mod runs;
mod seq;
#[cfg(test)]
mod simulated;
mod split;
mod stride;
mod text;
mod window;
mod work;

pub use curve::MeasuredCurve;
pub use result::{LevelPart, Part, Prediction, Source};
pub use runs::over_runs;
pub use text::{compared, text};

use crate::pattern::{Access, Kind, Options, Pattern};
use combine::Asked;
use figure::Figure;
use known::Known;
use lines::Lines;
use neighbours::Filled;
use records::machine::{Machine, Verdict};
use records::run::Refused;
use units::Estimate;

/// Predicts this pattern; `defaults` hold where an access says nothing itself.
pub fn predict(machine: &Machine, pattern: &Pattern, defaults: &Options) -> Result<Prediction, Refused> {
    let known = Known::new(machine);
    let difference = repeated::difference(&known);
    let mut parts = Vec::new();
    let line = known.line();
    let mut run = combine::run(&known, pattern, &mut |access, others| {
        let whole = |access: &Access| Access { options: access.options.or(defaults), ..access.clone() };
        let access = whole(access);
        let accesses = access.accesses(line);
        let others = others.iter().map(whole);
        let others: Vec<Lines> =
            others.flat_map(|other| lines::beside(&other, line, other.accesses(line) / accesses)).collect();
        let (figure, filled) = paced::figure(&known, &access, &others)?;
        let figure = repeated::allowed_for(figure, difference);
        let unbound = unbound(&known, &access, &others, filled, &figure);
        let figure = work::added(&known, &access, figure);
        parts.push(Part::of(&access, accesses, &figure));
        Ok(Asked { accesses, figure, unbound, work: access.options.work.unwrap_or(0.0) })
    })?;
    if !(run.accesses.is_finite() && run.time.hi.is_finite()) {
        let (what, why) = ("pattern".to_owned(), "more accesses than can be counted".to_owned());
        return Err(Refused { what, why, would_help: None });
    }
    let place = |name: &str| known.levels.iter().position(|level| level.name == name).unwrap_or(usize::MAX);
    run.levels.sort_by_key(|served| place(&served.level));
    match difference {
        Some(difference) => run.remarks.push(format!(
            "two experiments of this record differ by up to {:.0}% in the same latency: intervals allow for it",
            100.0 * difference
        )),
        None => run.remarks.push(
            "the record measured nothing twice ('gleaner measure threads' does): intervals may be too narrow".to_owned(),
        ),
    }
    if machine.run.grade.verdict == Verdict::Noisy {
        run.remarks
            .push("the record graded itself noisy: its figures may be off by more than they say".to_owned());
    }
    Ok(Prediction::of(&run, parts))
}

/// Predicts an access among others, which load these lines meanwhile, while guests fill a cache.
fn figure_of(
    known: &Known<'_>,
    access: &Access,
    others: &[Lines],
    filled: Option<Filled>,
) -> Result<Figure, Refused> {
    let area = held::between_loads(access, others, known.line());
    let larger = &Access { area, ..access.clone() };
    let figure = match access.kind {
        Kind::Chase => chase::of_nodes(known, larger),
        Kind::Rand | Kind::Rmw | Kind::Tree { .. } | Kind::Search => {
            rand::figure(known, access, others, filled)
        }
        Kind::Seq => seq::figure(known, larger),
        Kind::Stride { step } => stride::figure(known, larger, step),
        Kind::Window { size } => window::figure(known, larger, size),
    };
    remote::applied(known, access, figure?)
}

/// The time of an access if no load waited for another: what it takes of the queues of the core.
/// Where the record does not tell, what it takes in all.
fn unbound(
    known: &Known<'_>,
    access: &Access,
    others: &[Lines],
    filled: Option<Filled>,
    figure: &Figure,
) -> Estimate {
    if others.is_empty() || matches!(access.kind, Kind::Seq | Kind::Window { .. }) {
        return figure.time;
    }
    let mut loose = access.clone();
    loose.options = Options { mlp: Some(f64::INFINITY), instructions: None, ..loose.options };
    if loose.kind == Kind::Chase {
        loose.kind = Kind::Rand;
    }
    match figure_of(known, &loose, others, filled) {
        Ok(loose) if loose.time.value < figure.time.value => loose.time,
        _ => figure.time,
    }
}
