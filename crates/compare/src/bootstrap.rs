//! The ratio of two sides' medians and its standard error, by a bootstrap over runs, and one over
//! blocks.
//!
//! Runs are drawn with replacement. A run's value already holds the noise of its blocks, so that
//! drawing blocks as well would count it twice. Where there are too few runs to see how they
//! differ, the error is not taken as smaller than what blocks alone leave open. Records do not hold
//! blocks, but the interval that their bootstrap gave: values are drawn from a normal distribution
//! of that width, below and above.

use crate::figure::Value;
use crate::random::Random;
use crate::spread;
use units::median;

const DRAWS: usize = 400;

/// From this number on, runs themselves show how they differ.
const ENOUGH_RUNS: usize = 3;

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
    median(&side.iter().map(|value| value.log).collect::<Vec<_>>())
}

/// The standard error of one side's median.
fn error_of(side: &[Value], usual: f64, random: &mut Random) -> f64 {
    let runs = side.len();
    let of_blocks = if runs < ENOUGH_RUNS { blocks(side, random) } else { 0.0 };
    if runs == 1 {
        return of_blocks;
    }
    let of_runs = half_width(random, |random, _| side[random.below(runs)].log, runs);
    // What is drawn from n runs varies by (n - 1) / n of what runs do.
    let of_runs = of_runs * (runs as f64 / (runs as f64 - 1.0)).sqrt();
    let logs: Vec<f64> = side.iter().map(|value| value.log).collect();
    let own = spread::robust(&logs).unwrap_or(usual);
    let least = spread::with_usual(own, runs, usual) * variance_of_median(runs).sqrt();
    of_runs.max(of_blocks).max(least)
}

/// What blocks alone leave open of the median of runs.
fn blocks(side: &[Value], random: &mut Random) -> f64 {
    let draw = |random: &mut Random, at: usize| {
        let (run, z) = (&side[at % side.len()], random.normal());
        run.log + z * if z < 0.0 { run.below } else { run.above }
    };
    half_width(random, draw, side.len())
}

/// Half of the interval that holds medians of drawn values with the probability that a normal
/// distribution gives one deviation to each side. A single odd run does not widen it, as it would a
/// standard deviation.
fn half_width(random: &mut Random, draw: impl Fn(&mut Random, usize) -> f64, runs: usize) -> f64 {
    let mut drawn = vec![0.0; runs];
    let mut medians: Vec<f64> = (0..DRAWS)
        .map(|_| {
            for (at, value) in drawn.iter_mut().enumerate() {
                *value = draw(random, at);
            }
            median(&drawn)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let at = |share: f64| medians[(share * DRAWS as f64) as usize];
    (at(0.8413) - at(0.1587)) / 2.0
}

/// The variance of a median of n normally distributed values of variance 1.
fn variance_of_median(runs: usize) -> f64 {
    const FEW: [f64; 7] = [1.0, 1.0, 0.5, 0.449, 0.298, 0.287, 0.215];
    FEW.get(runs).copied().unwrap_or(1.571 / (runs as f64 + 0.5))
}
