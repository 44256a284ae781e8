//! Which of a row of ever harder patterns a prefetcher still follows. Pure.

use units::{Estimate, Quantity, Unit};

/// A pattern counts as followed if it costs less than this share of a random access.
pub(crate) const FOLLOWED: f64 = 0.8;

/// The last of the patterns, each with a number that says how hard it is, before the first that is not followed: at least
/// this, and less than that first one.
pub(crate) fn until(patterns: &[(f64, Estimate)], limit: impl Fn(Estimate) -> bool, unit: Unit) -> Quantity {
    if patterns.is_empty() {
        return Quantity::unresolved("no such pattern was resolved");
    }
    match patterns.iter().take_while(|p| limit(p.1)).count() {
        0 => Quantity::unresolved("not even the first is followed"),
        n => {
            let (last, next) = (patterns[n - 1].0, patterns[n.min(patterns.len() - 1)].0);
            Quantity::measured(Estimate::new(last, last, next), unit)
        }
    }
}
