//! Shares of samples, with their intervals.

use units::{Estimate, Quantity, Unit};

/// The quantile of the normal distribution for 95% intervals.
const Z: f64 = 1.959_964;

/// `part` of `all` samples as a share, with Wilson's interval.
pub fn share(part: u64, all: u64) -> Option<Estimate> {
    if all == 0 {
        return None;
    }
    let (n, p) = (all as f64, part as f64 / all as f64);
    let middle = (p + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    Some(Estimate::new(p, (middle - half).max(0.0), (middle + half).min(1.0)))
}

/// The same as a measured quantity.
pub fn measured_share(part: u64, all: u64) -> Quantity {
    match share(part, all) {
        Some(estimate) => Quantity::measured(estimate, Unit::Ratio),
        None => Quantity::unresolved("there are no samples"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_wilsons() {
        // The textbook's example: 10 of 100.
        let estimate = share(10, 100).unwrap();
        assert!((estimate.lo - 0.0552).abs() < 1e-4 && (estimate.hi - 0.1744).abs() < 1e-4, "{estimate:?}");
        let none = share(0, 50).unwrap();
        assert!(none.lo == 0.0 && none.hi > 0.05 && none.hi < 0.08, "{none:?}");
        let all = share(50, 50).unwrap();
        assert!(all.hi == 1.0 && all.lo > 0.92, "{all:?}");
        assert!(share(0, 0).is_none());
    }
}
