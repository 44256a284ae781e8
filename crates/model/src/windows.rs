//! Windows: all window sizes on one kind of page are fitted together, for they share the levels.

use crate::fit::{Fit, Of, fit};
use crate::staircase::Sample;
use records::machine::{WindowCurve, Windows};

pub(crate) fn fits(windows: &Windows) -> Vec<Fit> {
    let line = windows.line.0.max(1) as f64;
    let kind = |curve: &WindowCurve| (curve.pages.asked.clone(), curve.vectorised);
    let mut kinds: Vec<(String, bool)> = Vec::new();
    for curve in &windows.curves {
        if !kinds.contains(&kind(curve)) {
            kinds.push(kind(curve));
        }
    }
    let one = |(pages, vectorised): &(String, bool)| {
        let curves = windows.curves.iter().filter(|c| c.pages.asked == *pages && c.vectorised == *vectorised);
        let samples = curves.flat_map(|curve| {
            let lines = curve.window.0 as f64 / line;
            curve.points.iter().filter_map(move |point| {
                let time = point.cost.ns.value().filter(|&ns| ns > 0.0)?;
                Some(Sample { area: point.area.0 as f64, lines, time })
            })
        });
        fit(Of::Windows, pages, *vectorised, &samples.collect::<Vec<_>>())
    };
    kinds.iter().filter_map(one).collect()
}
