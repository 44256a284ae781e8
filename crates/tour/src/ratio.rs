//! How often as much one figure is as another.

use units::{Quantity, Unit};

/// A ratio with its interval; nothing where the interval reaches zero, for then it says nothing.
pub fn ratio(more: &Quantity, less: &Quantity) -> Option<Quantity> {
    let (more, less) = (more.estimate()?, less.estimate()?);
    if less.lo <= 0.0 {
        return None;
    }
    let ratio = more.over(less);
    (ratio.lo > 0.0).then(|| Quantity::measured(ratio, Unit::Ratio))
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Estimate;

    #[test]
    fn ratios_have_intervals_or_are_not_told() {
        let ns = |value, lo, hi| Quantity::measured(Estimate::new(value, lo, hi), Unit::Nanos);
        let told = ratio(&ns(100.0, 95.0, 105.0), &ns(2.0, 1.98, 2.02)).unwrap().estimate().unwrap();
        assert!(told.value == 50.0 && (47.0..48.0).contains(&told.lo) && told.hi > 52.0, "{told:?}");
        assert_eq!(ratio(&ns(100.0, 1.0, 300.0), &ns(10.0, 1.0, 30.0)), None);
        assert_eq!(ratio(&ns(100.0, 95.0, 105.0), &ns(1.0, 0.0, 2.0)), None);
        assert_eq!(ratio(&Quantity::unresolved("x"), &ns(1.0, 0.9, 1.1)), None);
    }
}
