//! The ratio of two sides' medians and its standard error, by a hierarchical bootstrap: runs are
//! drawn with replacement, and for each drawn run a value from the interval of its blocks.
//!
//! Records do not hold blocks, but the interval that their bootstrap gave: a value is drawn from a
//! normal distribution of that width, below and above.

use crate::figure::Value;
use crate::random::Random;
use crate::spread::{self, median};

const DRAWS: usize = 400;

/// Logarithm of NEW over BASE, and its standard error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio {
    pub(crate) log: f64,
    pub(crate) error: f64,
}

/// The runs of each side; how far apart runs usually are, over all figures.
pub(crate) fn ratio(base: &[Value], new: &[Value], usual: f64, random: &mut Random) -> Ratio {
    let log = middle(new) - middle(base);
    let error = error_of(base, usual, random).hypot(error_of(new, usual, random));
    Ratio { log, error }
}

pub(crate) fn middle(side: &[Value]) -> f64 {
    median(&mut side.iter().map(|value| value.log).collect::<Vec<_>>())
}

/// The standard error of one side's median.
fn error_of(side: &[Value], usual: f64, random: &mut Random) -> f64 {
    let runs = side.len();
    let mut drawn = vec![0.0; runs];
    let (mut sum, mut squares) = (0.0, 0.0);
    let centre = middle(side);
    for _ in 0..DRAWS {
        for value in &mut drawn {
            let run = &side[random.below(runs)];
            let z = random.normal();
            *value = run.log + z * if z < 0.0 { run.below } else { run.above };
        }
        let away = median(&mut drawn) - centre;
        sum += away;
        squares += away * away;
    }
    let draws = DRAWS as f64;
    let variance = (squares / draws - (sum / draws).powi(2)).max(0.0);
    if runs == 1 {
        return variance.sqrt();
    }
    // What is drawn from n runs varies by (n - 1) / n of what runs do.
    let drawn = variance * runs as f64 / (runs as f64 - 1.0);
    let logs: Vec<f64> = side.iter().map(|value| value.log).collect();
    let own = spread::robust(&logs).unwrap_or(usual);
    let least = spread::with_usual(own, runs, usual).powi(2) * variance_of_median(runs);
    drawn.max(least).sqrt()
}

/// The variance of a median of n normally distributed values of variance 1.
fn variance_of_median(runs: usize) -> f64 {
    const FEW: [f64; 7] = [1.0, 1.0, 0.5, 0.449, 0.298, 0.287, 0.215];
    FEW.get(runs).copied().unwrap_or(1.571 / (runs as f64 + 0.5))
}
