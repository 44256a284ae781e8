//! How far apart runs of one side are, as standard deviations of logarithms.

/// By the distances between two runs each: the one that a quarter of them stay below, over that of
/// a normal distribution of deviation 1 (Qn, by Rousseeuw and Croux). Up to half of the runs may be
/// odd, and with as many even ones it still tells how these differ. Nothing for a single run.
pub(crate) fn robust(logs: &[f64]) -> Option<f64> {
    let runs = logs.len();
    if runs < 2 {
        return None;
    }
    let mut distances = Vec::new();
    for (i, a) in logs.iter().enumerate() {
        distances.extend(logs[i + 1..].iter().map(|b| (a - b).abs()));
    }
    distances.sort_by(f64::total_cmp);
    let half = runs / 2 + 1;
    Some(distances.get(half * (half - 1) / 2 - 1)? * QUARTER * of_few(runs))
}

/// What the quarter of the distances stands for, for many runs.
const QUARTER: f64 = 2.2219;

/// The same for few runs, where the quarter lies elsewhere.
fn of_few(runs: usize) -> f64 {
    const FEW: [f64; 10] = [1.0, 1.0, 0.399, 0.994, 0.512, 0.844, 0.611, 0.857, 0.669, 0.872];
    let n = runs as f64;
    FEW.get(runs).copied().unwrap_or(if runs % 2 == 1 { n / (n + 1.4) } else { n / (n + 3.8) })
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn the_deviation_is_found_despite_odd_runs() {
        let mut random = Random::of(1, "spread");
        for runs in [2, 3, 4, 5, 8, 9, 20, 21] {
            let mut side = || (0..runs).map(|_| 0.03 * random.normal()).collect::<Vec<f64>>();
            let mean = (0..4000).map(|_| robust(&side()).unwrap()).sum::<f64>() / 4000.0;
            assert!((mean - 0.03).abs() < 0.002, "{runs}: {mean}");
        }
        assert!(robust(&[0.0, 0.01, 0.02, 9.0, 0.01]).unwrap() < 0.03);
        assert_eq!(robust(&[1.0]), None);
    }

    #[test]
    fn agreement_by_chance_is_not_believed() {
        assert!(with_usual(0.0, 2, 0.03) > 0.02);
        assert!((limit(0.03) - 0.087).abs() < 0.001);
    }
}
