//! Times of runs in pairs: without a change and with it.

use lab::rng::Rng;
use lab::stats::median_interval;
use units::Estimate;

#[derive(Default)]
pub(crate) struct Pairs {
    seconds: Vec<[f64; 2]>,
}

/// Up to this number of pairs all ways of signs are gone through; beyond it, some at random.
const EXACT: usize = 16;
const AT_RANDOM: u32 = 100_000;

impl Pairs {
    pub(crate) fn push(&mut self, without: f64, with: f64) {
        self.seconds.push([without, with]);
    }

    pub(crate) fn len(&self) -> usize {
        self.seconds.len()
    }

    /// How often as fast it is with the change: the median over the pairs.
    pub(crate) fn faster(&self) -> Option<Estimate> {
        let ratios: Vec<f64> = self.seconds.iter().map(|[without, with]| without / with).collect();
        if ratios.is_empty() { None } else { Some(median_interval(&ratios, &mut Rng::new(1))) }
    }

    /// Medians without and with the change.
    pub(crate) fn seconds(&self) -> [Estimate; 2] {
        [0, 1].map(|side| {
            let one: Vec<f64> = self.seconds.iter().map(|both| both[side]).collect();
            median_interval(&one, &mut Rng::new(1))
        })
    }

    /// How likely a difference like this is by chance: the share of all ways to exchange the two
    /// runs of pairs which differ as much (a permutation test of the mean logarithm of the ratio,
    /// two-sided).
    pub(crate) fn by_chance(&self) -> f64 {
        let logs: Vec<f64> = self.seconds.iter().map(|[without, with]| (without / with).ln()).collect();
        let seen = logs.iter().sum::<f64>().abs();
        // Rounding must not make the way that was seen differ from itself.
        let as_much = |sum: f64| sum.abs() >= seen * (1.0 - 1e-12);
        if logs.len() <= EXACT {
            let ways = 1_u32 << logs.len();
            let sum = |way: u32| -> f64 {
                logs.iter().enumerate().map(|(n, log)| if way >> n & 1 == 0 { *log } else { -log }).sum()
            };
            let count = (0..ways).filter(|&way| as_much(sum(way))).count();
            return count as f64 / f64::from(ways);
        }
        let mut rng = Rng::new(7);
        let mut count = 1;
        for _ in 0..AT_RANDOM {
            let sum: f64 = logs.iter().map(|log| if rng.below(2) == 0 { *log } else { -log }).sum();
            count += u32::from(as_much(sum));
        }
        f64::from(count) / f64::from(AT_RANDOM + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(of: &[(f64, f64)]) -> Pairs {
        let mut pairs = Pairs::default();
        for &(without, with) in of {
            pairs.push(without, with);
        }
        pairs
    }

    #[test]
    fn what_is_always_faster_is_no_chance() {
        let faster = pairs(&[
            (2.0, 1.0),
            (2.1, 1.1),
            (1.9, 1.0),
            (2.2, 1.0),
            (2.0, 1.1),
            (2.0, 0.9),
            (2.0, 1.0),
            (2.1, 1.0),
        ]);
        assert_eq!(faster.by_chance(), 2.0 / 256.0, "both ways of eight pairs");
        let estimate = faster.faster().unwrap();
        assert!((estimate.value - 2.0).abs() < 0.1 && estimate.lo > 1.7, "{estimate:?}");
        assert_eq!(faster.seconds()[0].value, 2.0);
    }

    #[test]
    fn what_is_now_faster_and_now_slower_is_chance() {
        let same = pairs(&[(1.0, 1.1), (1.1, 1.0), (1.0, 1.05), (1.05, 1.0)]);
        assert!(same.by_chance() > 0.9, "{}", same.by_chance());
        assert_eq!(pairs(&[]).by_chance(), 1.0);
        assert!(pairs(&[]).faster().is_none());
    }

    #[test]
    fn many_pairs_are_judged_by_ways_at_random() {
        let faster = pairs(&[(1.2, 1.0); 24]);
        assert!(faster.by_chance() < 1e-4);
        let mixed: Vec<(f64, f64)> =
            (0..24).map(|n| if n % 2 == 0 { (1.2, 1.0) } else { (1.0, 1.2) }).collect();
        assert!(pairs(&mixed).by_chance() > 0.9);
    }
}
