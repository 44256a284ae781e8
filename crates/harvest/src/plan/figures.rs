//! Whether a plan's figures can be harvested by: a plan may have been written or changed by hand.

use model::prices::Pricing;
use records::plan::Plan;
use std::ops::RangeInclusive;
use units::Quantity;

/// A figure of a plan that no harvest can go by.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{figure} is {found}; a plan has {least} to {most}")]
pub struct ImpossiblePlan {
    figure: &'static str,
    found: String,
    least: String,
    most: String,
}

/// What the mapping of a rewritten file can hold.
const QUANTUM_CYCLES: RangeInclusive<u32> = 1..=i32::MAX as u32;
const RING: RangeInclusive<u32> = 1..=i32::MAX as u32;
/// As a share: far more than the one from which no slowdown is held (333 %).
pub const MAX_SLOWDOWN: RangeInclusive<f64> = 0.0..=1e6;
/// A nanosecond to eleven days.
pub const MAX_ABSENCE_SECONDS: RangeInclusive<f64> = 1e-9..=1e6;
/// No memory is that slow.
const MISS_CYCLES: RangeInclusive<f64> = 0.0..=1e9;
/// Slower and faster than any core.
const CLOCK_HERTZ: RangeInclusive<f64> = 1e6..=1e12;

/// Refuses figures that are out of range. What is not resolved is none.
pub fn check_figures(plan: &Plan) -> Result<(), ImpossiblePlan> {
    let bounds = &plan.bounds;
    whole("bounds.quantum", bounds.quantum, &QUANTUM_CYCLES)?;
    whole("bounds.ring", bounds.ring, &RING)?;
    quantity("bounds.max_slowdown", &bounds.max_slowdown, &MAX_SLOWDOWN)?;
    if let Some(micros) = bounds.max_absence.value() {
        within("bounds.max_absence in seconds", micros / 1e6, &MAX_ABSENCE_SECONDS)?;
    }
    within("the last of prices.levels", plan.prices.miss().1.value, &MISS_CYCLES)?;
    quantity("prices.clock", &plan.prices.clock, &CLOCK_HERTZ)
}

fn quantity(
    figure: &'static str,
    found: &Quantity,
    range: &RangeInclusive<f64>,
) -> Result<(), ImpossiblePlan> {
    found.value().map_or(Ok(()), |value| within(figure, value, range))
}

fn within(figure: &'static str, found: f64, range: &RangeInclusive<f64>) -> Result<(), ImpossiblePlan> {
    if range.contains(&found) {
        return Ok(());
    }
    let [found, least, most] = [found, *range.start(), *range.end()].map(|value| format!("{value:e}"));
    Err(ImpossiblePlan { figure, found, least, most })
}

fn whole(figure: &'static str, found: u32, range: &RangeInclusive<u32>) -> Result<(), ImpossiblePlan> {
    if range.contains(&found) {
        return Ok(());
    }
    let [found, least, most] = [found, *range.start(), *range.end()].map(|value| value.to_string());
    Err(ImpossiblePlan { figure, found, least, most })
}
