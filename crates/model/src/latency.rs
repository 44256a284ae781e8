//! Latency over size: the curves of dependent loads at random.

use crate::fit::{Fit, Of, fit};
use crate::staircase::Sample;
use records::machine::{Access, LatencyCurves, Pattern};

pub(crate) fn fits(latency: &LatencyCurves) -> Vec<Fit> {
    let at_random =
        |curve: &&records::machine::Curve| curve.pattern == Pattern::Random && curve.access == Access::Read;
    let one = |curve: &records::machine::Curve| {
        let samples = curve.points.iter().filter_map(|point| {
            let time = point.latency.ns.value().filter(|&ns| ns > 0.0)?;
            Some(Sample { area: point.size.0 as f64, lines: 1.0, time })
        });
        fit(Of::Latency, &curve.pages.asked, false, &samples.collect::<Vec<_>>())
    };
    latency.curves.iter().filter(at_random).filter_map(one).collect()
}
