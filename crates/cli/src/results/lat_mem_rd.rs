//! Curves as lmbench's `lat_mem_rd` prints them: the stride, then size in megabytes and nanoseconds
//! a load, and an empty line behind each curve.
//!
//! What that tool does not know stands behind a `#`, where plotters and scripts that read two
//! columns pass it over: that a figure was disturbed, and that one was not resolved, and why.

use records::machine::{Access, Direction, Machine, Pattern};
use std::fmt::Write;
use units::{Bytes, Quantity};

/// Random reads over size.
pub(crate) fn of_latency(machine: &Machine) -> Option<String> {
    let result = machine.experiments.latency.as_ref()?.result.as_ref()?;
    let mut curves =
        result.curves.iter().filter(|c| c.pattern == Pattern::Random && c.access == Access::Read);
    let curve = curves.find(|c| !c.points.is_empty())?;
    Some(of_curve(curve.points[0].pitch, curve.points.iter().map(|p| (p.size, &p.latency.ns))))
}

/// Ascending reads over size, a curve for each stride.
pub(crate) fn of_strides(machine: &Machine) -> Option<String> {
    let result = machine.experiments.stride.as_ref()?.result.as_ref()?;
    let forward = || result.points.iter().filter(|p| p.direction == Direction::Forward);
    let mut strides: Vec<Bytes> = forward().map(|p| p.stride).collect();
    strides.sort();
    strides.dedup();
    let curve = |stride: Bytes| {
        let own = forward().filter(|p| p.stride == stride);
        of_curve(stride, own.map(|p| (p.size, &p.latency.ns)))
    };
    (!strides.is_empty()).then(|| strides.into_iter().map(curve).collect())
}

fn of_curve<'a>(stride: Bytes, points: impl Iterator<Item = (Bytes, &'a Quantity)>) -> String {
    let mut text = format!("\"stride={}\n", stride.0);
    for (size, latency) in points {
        let mib = size.0 as f64 / f64::from(1 << 20);
        // Writing to a `String` does not fail.
        let _ = match latency {
            Quantity::Resolved { value, disturbed: None, .. } => writeln!(text, "{mib:.5} {value:.3}"),
            Quantity::Resolved { value, disturbed: Some(by), .. } => {
                writeln!(text, "{mib:.5} {value:.3} # disturbed: {by}")
            }
            Quantity::Unresolved { unresolved } => writeln!(text, "# {mib:.5} not resolved: {unresolved}"),
        };
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Estimate, Unit};

    #[test]
    fn a_mark_stands_behind_two_columns() {
        let ns = |value| Quantity::measured(Estimate::exact(value), Unit::Nanos);
        let points = [
            (Bytes(512), ns(1.0833)),
            (Bytes::mib(64), ns(101.5).disturbed_by(Some("other tasks were running".to_owned()))),
            (Bytes::mib(2000), Quantity::unresolved("too few blocks")),
        ];
        let text = of_curve(Bytes(128), points.iter().map(|(size, latency)| (*size, latency)));
        assert_eq!(
            text,
            "\"stride=128\n0.00049 1.083\n64.00000 101.500 # disturbed: other tasks were running\n\
             # 2000.00000 not resolved: too few blocks\n\n"
        );
    }
}
