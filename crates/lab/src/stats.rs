//! Statistics over blocks: medians, percentiles, bootstrap intervals.
//!
//! Timings have a hard floor and a long tail, so nothing here assumes a normal distribution.

use crate::rng::Rng;
use units::Estimate;
pub use units::{median, quantile_sorted};

const RESAMPLES: usize = 1000;

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

/// Median with a 95% interval by percentile bootstrap. Below eight values the bootstrap of a median
/// is too optimistic, and the whole range is given instead (for six values it covers the true
/// median with 97%).
pub fn median_interval(values: &[f64], rng: &mut Rng) -> Estimate {
    let v = sorted(values);
    let mid = quantile_sorted(&v, 0.5);
    if v.len() < 8 {
        return Estimate::new(mid, v[0], v[v.len() - 1]);
    }
    let mut scratch = vec![0.0; v.len()];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            for s in &mut scratch {
                *s = v[rng.below(v.len() as u64) as usize];
            }
            let half = scratch.len() / 2;
            let (_, m, _) = scratch.select_nth_unstable_by(half, f64::total_cmp);
            *m
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    Estimate::new(mid, quantile_sorted(&medians, 0.025), quantile_sorted(&medians, 0.975))
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
    fn bootstrap_covers_the_median_about_as_often_as_it_says() {
        // Skewed values with median ln 2; of 300 intervals about 95% must hold it.
        let mut rng = Rng::new(11);
        let mut held = 0;
        for _ in 0..300 {
            let values: Vec<f64> = (0..15).map(|_| -(1.0 - uniform(&mut rng)).ln()).collect();
            held += u32::from(median_interval(&values, &mut rng).contains(std::f64::consts::LN_2));
        }
        assert!((265..=298).contains(&held), "{held} of 300");
    }

    fn uniform(rng: &mut Rng) -> f64 {
        rng.below(1 << 52) as f64 / (1u64 << 52) as f64
    }

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
