//! Figures of a document: the points that its text states, beside the same from the evidence.

use crate::document::Ledger;
use crate::evidence::{Evidence, claimed};
use records::reproduction::{ClaimCurve, ClaimCurves, ClaimPoint};
use units::{Quantity, Unit};

/// The figures of a document for which there is evidence; a figure without it is left out.
pub fn curves(document: &Ledger, evidence: &Evidence<'_>) -> Vec<ClaimCurves> {
    let drawn = document.figures.iter().filter_map(|figure| figure(evidence).ok());
    drawn.filter(|figure| figure.here.iter().any(|curve| !curve.points.is_empty())).collect()
}

/// Points that a document states, each with the lowest and highest value that it gives.
pub(crate) fn stated(name: &str, unit: Unit, points: &[(f64, f64, f64)]) -> ClaimCurve {
    let point = |&(x, lo, hi): &(f64, f64, f64)| ClaimPoint { x, y: claimed(lo, hi, unit) };
    ClaimCurve { name: name.to_owned(), points: points.iter().map(point).collect() }
}

/// Points of this machine, without those that are not resolved.
pub(crate) fn measured(name: String, points: impl Iterator<Item = (f64, Quantity)>) -> ClaimCurve {
    let resolved = points.filter(|(_, y)| y.value().is_some());
    ClaimCurve { name, points: resolved.map(|(x, y)| ClaimPoint { x, y }).collect() }
}
