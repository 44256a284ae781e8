//! Shares of counted cases, with their intervals.

use crate::Estimate;

/// The quantile of the normal distribution for 95% intervals.
const Z: f64 = 1.96;

/// `part` of `all` cases as a share, with Wilson's 95% interval: it stays within 0 and 1, and says
/// how little few cases say. Nothing where there are no cases.
pub fn share(part: u64, all: u64) -> Option<Estimate> {
    if all == 0 {
        return None;
    }
    let (n, p) = (all as f64, part as f64 / all as f64);
    let middle = (p + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    Some(Estimate::new(p, (middle - half).max(0.0), (middle + half).min(1.0)))
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
        assert!(none.value == 0.0 && none.lo == 0.0 && none.hi > 0.05 && none.hi < 0.08, "{none:?}");
        let all = share(50, 50).unwrap();
        assert!(all.hi == 1.0 && all.lo > 0.92, "{all:?}");
        assert!(share(0, 0).is_none());
    }

    #[test]
    fn few_cases_say_little() {
        let few = share(10, 10).unwrap();
        assert!(few.value == 1.0 && few.lo < 0.75, "{few:?}");
        let many = share(990, 1000).unwrap();
        assert!(many.lo > 0.98 && many.hi < 1.0, "{many:?}");
        let half = share(500, 1000).unwrap();
        assert!(half.contains(0.5) && half.hi - half.lo < 0.07, "{half:?}");
    }
}
