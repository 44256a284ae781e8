//! Fits of a machine record: how many levels the memory hierarchy has, how large they are and what
//! they cost, each with an interval, and how well the fit predicts areas that it has not seen; and
//! predictions of access patterns from them. [`prices`] takes from a record what misses and yields
//! cost.
//!
//! Sizes that the host claims are never inputs.
//!
//! To fit another experiment: a file that turns its points into [`staircase::Sample`]s, and a line
//! in [`fits_with_curves`].
#![forbid(unsafe_code)]

mod bends;
mod fit;
mod fitted;
mod hinge;
mod identify;
mod latency;
mod least_squares;
pub mod pattern;
mod points;
pub mod predict;
pub mod prices;
mod profile;
mod reach;
mod sample;
mod segments;
mod staircase;
#[cfg(test)]
mod synthetic;
mod text;
mod walks;
mod windows;

pub use bends::{Bend, BendAsLevels, BendLevel, Curve, bends};
pub use fit::{Fit, Level, Of, Residual, WalksOf};
pub use fitted::{FitWithCurves, FittedCurve, FittedPoint, fits_with_curves};
pub use identify::{Identifiable, Together};
pub use text::{bends_text, text};
pub use walks::Tables;

use records::machine::Machine;

/// All fits that the record has points for.
pub fn fits(machine: &Machine) -> Vec<Fit> {
    fits_with_curves(machine).into_iter().map(|found| found.fit).collect()
}
