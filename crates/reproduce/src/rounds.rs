//! Figures of programs that are run in rounds: medians over the rounds.

use crate::programs::{LOADS_LOOSE, LOADS_OF_EIGHT, LOADS_OF_ONE, LOADS_TIGHT, THROUGHPUT};
use units::{Quantity, Rng, Unit, median_interval};

/// How many times as fast the second of two programs is: the median over pairs of their times.
pub fn times_as_fast(seconds: &[[f64; 2]]) -> Quantity {
    let ratios: Vec<f64> = seconds.iter().map(|[first, second]| first / second).collect();
    median(&ratios)
}

fn median(values: &[f64]) -> Quantity {
    if values.is_empty() {
        return Quantity::unresolved("no round was run");
    }
    Quantity::measured(median_interval(values, &mut Rng::new(1)), Unit::Ratio)
}

/// One harvest of a chase, with chases as scavengers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChaseRun {
    /// Of the primary.
    pub loads: f64,
    /// Of all scavengers while the primary worked.
    pub scavengers_loads: f64,
    pub seconds: f64,
    /// What the primary takes alone, where it ran alone in this round, too.
    pub alone_seconds: Option<f64>,
}

impl ChaseRun {
    /// Loads of scavengers for each load of the primary.
    fn ratio(&self) -> f64 {
        self.scavengers_loads / self.loads
    }

    /// Loads a second of all chases together, over those of the primary alone.
    fn throughput(&self) -> Option<f64> {
        Some((1.0 + self.ratio()) * self.alone_seconds? / self.seconds)
    }
}

/// Harvests with few scavengers and many, under a loose bound and a tight one, in turns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChaseRounds {
    pub one: Vec<ChaseRun>,
    /// Under the loosest bound of these.
    pub eight: Vec<ChaseRun>,
    pub tight: Vec<ChaseRun>,
}

impl ChaseRounds {
    /// The figures, by the names in [`crate::programs`].
    pub fn figures(&self) -> Vec<(&'static str, Quantity)> {
        let of = |values: &[f64]| {
            if values.contains(&0.0) {
                return Quantity::unresolved("the scavengers took no step: none went aboard");
            }
            median(values).disturbed_by(self.unsteady())
        };
        let ratios = |runs: &[ChaseRun]| of(&runs.iter().map(ChaseRun::ratio).collect::<Vec<_>>());
        let throughput: Vec<f64> = self.eight.iter().filter_map(ChaseRun::throughput).collect();
        vec![
            (LOADS_OF_ONE, ratios(&self.one)),
            (LOADS_OF_EIGHT, ratios(&self.eight)),
            (LOADS_TIGHT, ratios(&self.tight)),
            (LOADS_LOOSE, ratios(&self.eight)),
            (THROUGHPUT, of(&throughput)),
        ]
    }

    /// A chase alone takes the same time in each round, unless other work takes the CPU.
    fn unsteady(&self) -> Option<String> {
        let all = [&self.one, &self.eight, &self.tight];
        let times = || all.into_iter().flatten().filter_map(|run| run.alone_seconds);
        let (least, most) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
        (most > STEADY * least)
            .then(|| format!("a chase alone took {least:.1} s in one round and {most:.1} s in another"))
    }
}

const STEADY: f64 = 1.2;

#[cfg(test)]
mod tests {
    use super::*;
    use units::Estimate;

    fn run(scavengers_loads: f64, alone_seconds: f64) -> ChaseRun {
        let alone_seconds = Some(alone_seconds);
        ChaseRun { loads: 100.0, scavengers_loads, seconds: 2.0, alone_seconds }
    }

    fn figure(rounds: &ChaseRounds, name: &str) -> Quantity {
        rounds.figures().into_iter().find(|(other, _)| *other == name).unwrap().1
    }

    #[test]
    fn a_program_is_as_much_faster_as_in_the_median_of_pairs() {
        let faster = times_as_fast(&[[3.0, 1.0], [4.0, 1.0], [2.0, 1.0]]).estimate();
        assert_eq!(faster, Some(Estimate::new(3.0, 2.0, 4.0)));
        assert_eq!(times_as_fast(&[]).estimate(), None);
    }

    #[test]
    fn loads_of_scavengers_are_counted_by_those_of_the_primary() {
        let eight = vec![run(300.0, 1.0), run(500.0, 1.0), run(400.0, 1.0)];
        let rounds = ChaseRounds { one: vec![run(50.0, 1.0)], eight, tight: vec![run(100.0, 1.0)] };
        let value = |name| figure(&rounds, name).estimate().unwrap();
        assert_eq!(value(LOADS_OF_ONE).value, 0.5);
        assert_eq!(value(LOADS_OF_EIGHT), Estimate::new(4.0, 3.0, 5.0));
        assert_eq!(value(LOADS_LOOSE), value(LOADS_OF_EIGHT));
        assert_eq!(value(LOADS_TIGHT).value, 1.0);
        assert_eq!(value(THROUGHPUT), Estimate::new(2.5, 2.0, 3.0));
    }

    #[test]
    fn scavengers_that_never_went_aboard_make_no_figure() {
        let rounds = ChaseRounds { one: vec![run(0.0, 1.0), run(50.0, 1.0)], ..ChaseRounds::default() };
        let Quantity::Unresolved { unresolved } = figure(&rounds, LOADS_OF_ONE) else { panic!("resolved") };
        assert!(unresolved.contains("none went aboard"), "{unresolved}");
    }

    #[test]
    fn times_that_differ_are_a_sign_of_other_work() {
        let alone = |times: &[f64]| {
            let eight = times.iter().map(|&seconds| run(100.0, seconds)).collect();
            ChaseRounds { eight, ..ChaseRounds::default() }
        };
        assert_eq!(alone(&[1.0, 1.1, 1.05]).unsteady(), None);
        assert!(alone(&[1.0, 1.3]).unsteady().is_some_and(|why| why.contains("1.3 s")));
        assert_eq!(alone(&[]).unsteady(), None);
        let Quantity::Resolved { disturbed, .. } = figure(&alone(&[1.0, 1.3]), LOADS_OF_EIGHT) else {
            panic!("not resolved")
        };
        assert!(disturbed.is_some_and(|why| why.contains("1.3 s")));
    }
}
