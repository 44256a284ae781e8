//! Statistics over blocks: medians, means, spreads, lines; intervals are those of `units`.
//!
//! Timings have a hard floor and a long tail, so nothing here assumes a normal distribution.

pub use units::{median, median_interval, quantile_sorted};

pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut v = values.to_vec();
    v.sort_by(f64::total_cmp);
    v
}

/// The mean of what lies below the `keep` quantile: for short shots, whose median would only show
/// the timer's steps while their tail shows interrupts.
pub fn trimmed_mean(values: &[f64], keep: f64) -> f64 {
    let v = sorted(values);
    let n = ((v.len() as f64 * keep).ceil() as usize).clamp(1, v.len());
    v[..n].iter().sum::<f64>() / n as f64
}

/// Half the distance between the quartiles, over the median: how wide the bulk of the values lies.
pub fn relative_spread(values: &[f64]) -> f64 {
    let v = sorted(values);
    let mid = quantile_sorted(&v, 0.5);
    if mid == 0.0 { 0.0 } else { (quantile_sorted(&v, 0.75) - quantile_sorted(&v, 0.25)) / 2.0 / mid.abs() }
}

/// Least squares line `y = slope·x + offset` by Theil and Sen (median of slopes): one wild point in
/// four does not move it.
pub fn robust_line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let mut slopes = Vec::new();
    for (i, a) in points.iter().enumerate() {
        for b in &points[i + 1..] {
            if (b.0 - a.0).abs() > f64::EPSILON {
                slopes.push((b.1 - a.1) / (b.0 - a.0));
            }
        }
    }
    if slopes.is_empty() {
        return None;
    }
    let slope = median(&slopes);
    let offsets: Vec<f64> = points.iter().map(|p| p.1 - slope * p.0).collect();
    Some((slope, median(&offsets)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ignores_a_wild_point() {
        let mut points: Vec<(f64, f64)> =
            (1..=12).map(|n| (f64::from(n), 100.0 * f64::from(n) + 45.0)).collect();
        points[4].1 = 5000.0;
        let (slope, offset) = robust_line(&points).unwrap();
        assert!((slope - 100.0).abs() < 1e-9 && (offset - 45.0).abs() < 1e-9);
    }

    #[test]
    fn trimmed_mean_drops_the_tail() {
        assert_eq!(trimmed_mean(&[1.0, 1.0, 1.0, 1000.0], 0.75), 1.0);
    }
}
