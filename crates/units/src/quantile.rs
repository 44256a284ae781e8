//! Quantiles and medians.

/// The `q` quantile (0 ..= 1) of sorted values, linear between neighbours.
pub fn quantile_sorted(sorted: &[f64], q: f64) -> f64 {
    assert!(!sorted.is_empty(), "quantile of nothing");
    let at = q.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (below, share) = (at.floor() as usize, at.fract());
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * share
}

/// The median; of an even number of values the mean of the two in the middle.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_sorted(&sorted, 0.5)
}

/// The median of sorted values where it must be one of them, and no mean of two: of an even number
/// the upper one of those in the middle.
pub fn middle_sorted<T: Copy>(sorted: &[T]) -> Option<T> {
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        let v = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(quantile_sorted(&v, 0.0), 1.0);
        assert_eq!(quantile_sorted(&v, 0.5), 2.5);
        assert_eq!(quantile_sorted(&v, 1.0), 4.0);
        assert_eq!(quantile_sorted(&[5.0], 0.7), 5.0);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[5.0]), 5.0);
        assert_eq!(median(&[3.0, 1.0, 100.0]), 3.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 100.0]), 3.0);
        assert_eq!(middle_sorted(&[1, 2, 3]), Some(2));
        assert_eq!(middle_sorted(&[1, 2, 3, 4]), Some(3));
        assert_eq!(middle_sorted::<u64>(&[]), None);
    }
}
