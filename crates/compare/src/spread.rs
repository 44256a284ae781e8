//! How far apart runs of one side are, as standard deviations of logarithms.

/// The median distance of two runs, over that of a normal distribution of deviation 1: one odd run
/// in four hardly moves it. Nothing for a single run.
pub(crate) fn robust(logs: &[f64]) -> Option<f64> {
    let mut distances = Vec::new();
    for (i, a) in logs.iter().enumerate() {
        distances.extend(logs[i + 1..].iter().map(|b| (a - b).abs()));
    }
    if distances.is_empty() { None } else { Some(median(&mut distances) / MEDIAN_DISTANCE) }
}

/// The median of |a - b| for two normally distributed numbers of deviation 1.
const MEDIAN_DISTANCE: f64 = 0.9539;

/// A few runs may agree by chance. So a figure's spread is taken together with the usual one of all
/// figures, which counts as much as this number of degrees of freedom.
const USUAL_COUNTS: f64 = 1.0;

/// The spread of a figure of `runs` runs, where that of figures is usually `usual`.
pub(crate) fn with_usual(own: f64, runs: usize, usual: f64) -> f64 {
    let degrees = runs as f64 - 1.0;
    ((own * own * degrees + usual * usual * USUAL_COUNTS) / (degrees + USUAL_COUNTS)).sqrt()
}

/// Two runs of the same thing are this far apart at most, in 95% of cases: the repeatability limit
/// of ISO 5725, as a share.
pub(crate) fn limit(spread: f64) -> f64 {
    (1.96 * std::f64::consts::SQRT_2 * spread).exp_m1()
}

/// Of an even number of values the mean of the middle ones.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { f64::midpoint(values[half - 1], values[half]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn the_deviation_is_found_despite_an_odd_run() {
        let mut random = Random::of(1, "spread");
        let mut logs: Vec<f64> = (0..400).map(|_| 0.03 * random.normal()).collect();
        assert!((robust(&logs).unwrap() - 0.03).abs() < 0.003);
        logs[0] = 100.0;
        assert!((robust(&logs).unwrap() - 0.03).abs() < 0.003);
        assert_eq!(robust(&[1.0]), None);
    }

    #[test]
    fn agreement_by_chance_is_not_believed() {
        assert!(with_usual(0.0, 2, 0.03) > 0.02);
        assert!((limit(0.03) - 0.087).abs() < 0.001);
    }
}
