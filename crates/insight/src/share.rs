//! Shares of samples, with their intervals.

use units::{Quantity, Unit, share};

/// `part` of `all` samples as a measured quantity.
pub fn measured_share(part: u64, all: u64) -> Quantity {
    match share(part, all) {
        Some(estimate) => Quantity::measured(estimate, Unit::Ratio),
        None => Quantity::unresolved("there are no samples"),
    }
}
