//! What a record says twice: the threads experiment measures the latency of single threads again,
//! minutes after the curve. How far the two differ is what its figures can be off by, whatever the
//! interval of each says.

use super::curve::MeasuredCurve;
use super::figure::{Figure, widened};
use super::known::Known;

/// The largest relative difference between the two; `None` if the record has only one.
pub(crate) fn difference(known: &Known<'_>) -> Option<f64> {
    let experiments = &known.machine.experiments;
    let latency = experiments.latency.as_ref()?.result.as_ref()?;
    let threads = experiments.threads.as_ref()?.result.as_ref()?;
    let curve = MeasuredCurve::random_reads(latency)?;
    let alone = threads.crowds.iter().filter(|crowd| crowd.threads == 1);
    let off = alone.filter_map(|crowd| {
        let again = crowd.latency.ns.value().filter(|&ns| ns > 0.0)?;
        let first = curve.at(crowd.size.0 as f64).value;
        Some((again / first).max(first / again) - 1.0)
    });
    off.reduce(f64::max)
}

/// With intervals at least that wide.
pub(crate) fn allowed_for(mut figure: Figure, difference: Option<f64>) -> Figure {
    let Some(difference) = difference else { return figure };
    figure.time = widened(figure.time, difference);
    for served in &mut figure.levels {
        served.time = widened(served.time, difference);
    }
    figure
}
