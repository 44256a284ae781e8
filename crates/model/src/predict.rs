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
mod known;
mod rand;
mod remote;
mod repeated;
mod result;
mod runs;
mod seq;
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
use figure::Figure;
use known::Known;
use records::machine::{Machine, Verdict};
use records::run::Refused;

/// Predicts this pattern; `defaults` hold where an access says nothing itself.
pub fn predict(machine: &Machine, pattern: &Pattern, defaults: &Options) -> Result<Prediction, Refused> {
    let known = Known::new(machine);
    let difference = repeated::difference(&known);
    let mut parts = Vec::new();
    let mut run = combine::run(&known, pattern, &mut |access| {
        let options = access.options.or(defaults);
        let access = Access { options, ..access.clone() };
        let figure = repeated::allowed_for(figure_of(&known, &access)?, difference);
        let figure = work::added(&known, &access, figure);
        let accesses = access.accesses(known.line());
        parts.push(Part::of(&access, accesses, &figure));
        Ok((accesses, figure))
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

fn figure_of(known: &Known<'_>, access: &Access) -> Result<Figure, Refused> {
    let figure = match access.kind {
        Kind::Chase => chase::figure(known, access),
        Kind::Rand => rand::figure(known, access),
        Kind::Seq => seq::figure(known, access),
        Kind::Stride { step } => stride::figure(known, access, step),
        Kind::Window { size } => window::figure(known, access, size),
    };
    remote::applied(known, access, figure?)
}
