//! Windows: all window sizes on one kind of page are fitted together, for they share the levels.

use crate::fit::{Fit, Fitted, Of, fit};
use crate::reach::reaches;
use crate::sample::Sample;
use crate::walks::Tables;
use records::machine::{Tlb, WindowCurve, Windows};

pub(crate) fn fits(windows: &Windows, tlb: Option<&Tlb>, guest: bool) -> Vec<Fit> {
    let kind = |curve: &WindowCurve| (curve.pages.asked.clone(), curve.vectorised);
    let mut kinds: Vec<(String, bool)> = Vec::new();
    for curve in &windows.curves {
        if !kinds.contains(&kind(curve)) {
            kinds.push(kind(curve));
        }
    }
    let one = |(pages, vectorised): &(String, bool)| fitted(windows, pages, *vectorised, tlb, guest);
    kinds.iter().filter_map(one).map(|fitted| fitted.fit).collect()
}

/// The fit to all windows of one kind.
pub(crate) fn fitted(
    windows: &Windows,
    pages: &str,
    vectorised: bool,
    tlb: Option<&Tlb>,
    guest: bool,
) -> Option<Fitted> {
    let line = windows.line.0.max(1) as f64;
    let curves = windows.curves.iter().filter(|c| c.pages.asked == pages && c.vectorised == vectorised);
    let samples = curves.flat_map(|curve| {
        let lines = curve.window.0 as f64 / line;
        curve.points.iter().filter_map(move |point| {
            let time = point.cost.ns.value().filter(|&ns| ns > 0.0)?;
            Some(Sample { area: point.area.0 as f64, lines, time })
        })
    });
    let samples = samples.collect::<Vec<_>>();
    fit(Of::Windows, pages, vectorised, &samples, &reaches(tlb, pages), Tables::of(pages, guest))
}
