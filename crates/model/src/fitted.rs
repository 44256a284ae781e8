//! Fits with the points that they were made to, to be drawn: what was measured, and what the fit
//! says of the same areas.

use crate::fit::{Fit, Fitted};
use crate::{latency, windows};
use records::machine::Machine;
use units::{Bytes, Estimate};

#[derive(Clone, Debug)]
pub struct FitWithCurves {
    pub fit: Fit,
    /// One of loads, or one for each size of windows.
    pub curves: Vec<FittedCurve>,
}

#[derive(Clone, Debug)]
pub struct FittedCurve {
    /// None of single loads.
    pub window: Option<Bytes>,
    pub points: Vec<FittedPoint>,
}

/// Times in nanoseconds, of a load or of a whole window.
#[derive(Clone, Copy, Debug)]
pub struct FittedPoint {
    pub area: Bytes,
    pub measured: Estimate,
    pub modelled: Estimate,
}

/// All fits that the record has points for, as [`crate::fits`] gives them.
pub fn fits_with_curves(machine: &Machine) -> Vec<FitWithCurves> {
    let experiments = &machine.experiments;
    let tlb = experiments.tlb.as_ref().and_then(|outcome| outcome.result.as_ref());
    let guest = machine.host.virtualization.is_guest();
    let mut all = Vec::new();
    if let Some(found) = experiments.windows.as_ref().and_then(|outcome| outcome.result.as_ref()) {
        let line = found.line.0.max(1) as f64;
        for (pages, vectorised) in windows::kinds(found) {
            let Some(fitted) = windows::fitted(found, &pages, vectorised, tlb, guest) else { continue };
            let curves = windows::curves(found, &pages, vectorised);
            let curves = curves.map(|curve| FittedCurve {
                window: Some(curve.window),
                points: points(
                    &fitted,
                    curve.window.0 as f64 / line,
                    curve.points.iter().filter_map(|p| Some((p.area, p.cost.ns.estimate()?))),
                ),
            });
            let curves = curves.collect();
            all.push(FitWithCurves { fit: fitted.fit, curves });
        }
    }
    if let Some(found) = experiments.latency.as_ref().and_then(|outcome| outcome.result.as_ref()) {
        for curve in latency::curves(found) {
            let Some(fitted) = latency::fitted(curve, tlb, guest) else { continue };
            let measured = curve.points.iter().filter_map(|p| Some((p.size, p.latency.ns.estimate()?)));
            let curves = vec![FittedCurve { window: None, points: points(&fitted, 1.0, measured) }];
            all.push(FitWithCurves { fit: fitted.fit, curves });
        }
    }
    all
}

fn points(
    fitted: &Fitted,
    lines: f64,
    measured: impl Iterator<Item = (Bytes, Estimate)>,
) -> Vec<FittedPoint> {
    let measured = measured.filter(|(_, measured)| measured.value > 0.0);
    let point = |(area, measured): (Bytes, Estimate)| FittedPoint {
        area,
        measured,
        modelled: fitted.time(area.0 as f64, lines),
    };
    measured.map(point).collect()
}
