//! Latency over size: the curves of dependent loads at random.

use crate::fit::{Fitted, Of, fit};
use crate::reach::reaches;
use crate::sample::Sample;
use crate::walks::Tables;
use records::machine::{Access, Curve, LatencyCurves, Pattern, Tlb};

/// Those that are fitted.
pub(crate) fn curves(latency: &LatencyCurves) -> impl Iterator<Item = &Curve> {
    let at_random = |curve: &&Curve| curve.pattern == Pattern::Random && curve.access == Access::Read;
    latency.curves.iter().filter(at_random)
}

/// The fit to one curve.
pub(crate) fn fitted(curve: &Curve, tlb: Option<&Tlb>, guest: bool) -> Option<Fitted> {
    let samples = curve.points.iter().filter_map(|point| {
        let time = point.latency.ns.value().filter(|&ns| ns > 0.0)?;
        Some(Sample { area: point.size.0 as f64, lines: 1.0, time })
    });
    fit(
        Of::Latency,
        &curve.pages.asked,
        false,
        &samples.collect::<Vec<_>>(),
        &reaches(tlb, &curve.pages.asked),
        Tables::of(&curve.pages.asked, guest),
    )
}
