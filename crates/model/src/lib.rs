//! Fits of a machine record: how many levels the memory hierarchy has, how large they are and what
//! they cost, each with an interval, and how well the fit predicts areas that it has not seen; and
//! predictions of access patterns from them.
//!
//! Sizes that the host claims are never inputs.
//!
//! To fit another experiment: a file that turns its points into [`staircase::Sample`]s, and a line
//! in [`fits`].
#![forbid(unsafe_code)]

mod bends;
mod fit;
mod hinge;
mod identify;
mod latency;
mod least_squares;
pub mod pattern;
mod points;
pub mod predict;
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

pub use bends::{Bend, Curve, bends};
pub use fit::{Fit, Level, Of, Residual, WalksOf};
pub use identify::{Identifiable, Together};
pub use text::{bends_text, text};
pub use walks::Tables;

use records::machine::Machine;

/// All fits that the record has points for.
pub fn fits(machine: &Machine) -> Vec<Fit> {
    let experiments = &machine.experiments;
    let windows = experiments.windows.as_ref().and_then(|outcome| outcome.result.as_ref());
    let latency = experiments.latency.as_ref().and_then(|outcome| outcome.result.as_ref());
    let tlb = experiments.tlb.as_ref().and_then(|outcome| outcome.result.as_ref());
    let guest = machine.host.virtualization.is_guest();
    let mut fits = windows.map(|windows| windows::fits(windows, tlb, guest)).unwrap_or_default();
    fits.extend(latency.map(|latency| latency::fits(latency, tlb, guest)).unwrap_or_default());
    fits
}
