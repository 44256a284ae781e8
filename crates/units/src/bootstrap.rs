//! Medians with their intervals.
//!
//! Timings have a hard floor and a long tail, so nothing here assumes a normal distribution.

use crate::{Estimate, Rng, quantile_sorted};

const RESAMPLES: usize = 1000;

/// Median with a 95% interval by percentile bootstrap. Below eight values the bootstrap of a median
/// is too optimistic, and the whole range is given instead (for six values it covers the true
/// median with 97%).
pub fn median_interval(values: &[f64], rng: &mut Rng) -> Estimate {
    let mut v = values.to_vec();
    v.sort_by(f64::total_cmp);
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
}
