//! Windows: all window sizes on one kind of page are fitted together, for they share the levels.

use crate::fit::{Fitted, Of, fit};
use crate::reach::reaches;
use crate::sample::Sample;
use crate::walks::Tables;
use records::machine::{Tlb, WindowCurve, Windows};

/// Kinds of pages, each with vectors or without.
pub(crate) fn kinds(windows: &Windows) -> Vec<(String, bool)> {
    let mut kinds: Vec<(String, bool)> = Vec::new();
    for curve in &windows.curves {
        let kind = (curve.pages.asked.clone(), curve.vectorised);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

/// The curves of one kind, a size of windows each.
pub(crate) fn curves<'a>(
    windows: &'a Windows,
    pages: &'a str,
    vectorised: bool,
) -> impl Iterator<Item = &'a WindowCurve> {
    windows.curves.iter().filter(move |c| c.pages.asked == pages && c.vectorised == vectorised)
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
    let samples = curves(windows, pages, vectorised).flat_map(|curve| {
        let lines = curve.window.0 as f64 / line;
        curve.points.iter().filter_map(move |point| {
            let time = point.cost.ns.value().filter(|&ns| ns > 0.0)?;
            Some(Sample { area: point.area.0 as f64, lines, time })
        })
    });
    let samples = samples.collect::<Vec<_>>();
    fit(Of::Windows, pages, vectorised, &samples, &reaches(tlb, pages), Tables::of(pages, guest))
}
