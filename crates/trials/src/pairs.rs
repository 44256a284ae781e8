//! Times of runs in pairs: without a change and with it.

use lab::rng::Rng;
use lab::stats::median_interval;
use units::{Estimate, student};

#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs {
    seconds: Vec<[f64; 2]>,
    failed: Option<String>,
}

impl Pairs {
    pub(crate) fn push(&mut self, without: f64, with: f64) {
        self.seconds.push([without, with]);
    }

    pub(crate) fn len(&self) -> usize {
        self.seconds.len()
    }

    /// A run with the change counts for nothing, and so does the change.
    pub(crate) fn fail(&mut self, why: String) {
        self.failed.get_or_insert(why);
    }

    pub(crate) fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// The median of the logarithms of the ratios: to choose by, since one disturbed run moves it
    /// little.
    pub(crate) fn middle(&self) -> Option<f64> {
        let logs = self.ratios();
        (!logs.is_empty()).then(|| units::median(&logs))
    }

    /// The same, where it is larger than its error.
    pub(crate) fn clear_mean(&self) -> Option<f64> {
        self.logs().filter(|(mean, error, _)| mean > error).map(|(mean, ..)| mean)
    }

    /// The squares of how far the logarithms are from their mean, and the degrees of freedom.
    pub(crate) fn squares(&self) -> Option<(f64, f64)> {
        let (_, error, degrees) = self.logs()?;
        Some((error.powi(2) * (degrees + 1.0) * degrees, degrees))
    }

    fn ratios(&self) -> Vec<f64> {
        self.seconds.iter().map(|[without, with]| (without / with).ln()).collect()
    }

    /// How often as fast it is with the change: the mean over the pairs, and an interval that
    /// misses it with this probability. One pair says nothing of how much pairs differ.
    pub(crate) fn faster(&self, missed: f64) -> Option<Estimate> {
        let (mean, error, degrees) = self.logs()?;
        let reach = student::beyond(missed, degrees) * error;
        Some(Estimate::new(mean.exp(), (mean - reach).exp(), (mean + reach).exp()))
    }

    /// How likely a difference like this is by chance, by the same distribution as the interval.
    pub(crate) fn by_chance(&self) -> f64 {
        match self.logs() {
            Some((mean, error, degrees)) if error > 0.0 => student::two_sided(mean / error, degrees),
            Some((mean, ..)) if mean != 0.0 => 0.0,
            _ => 1.0,
        }
    }

    /// The mean of the logarithms of the ratios, its error, and the degrees of freedom.
    fn logs(&self) -> Option<(f64, f64, f64)> {
        let logs = self.ratios();
        let n = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / n;
        let degrees = n - 1.0;
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / degrees;
        (logs.len() > 1).then(|| (mean, (variance / n).sqrt(), degrees))
    }

    /// Medians without and with the change.
    pub(crate) fn seconds(&self) -> [Estimate; 2] {
        [0, 1].map(|side| {
            let one: Vec<f64> = self.seconds.iter().map(|both| both[side]).collect();
            median_interval(&one, &mut Rng::new(1))
        })
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
        let faster = pairs(&[(2.0, 1.0), (2.1, 1.1), (1.9, 1.0), (2.2, 1.0)]);
        let estimate = faster.faster(0.05).unwrap();
        assert!((estimate.value - 2.0).abs() < 0.1 && estimate.lo > 1.6, "{estimate:?}");
        assert!(faster.by_chance() < 0.01, "{}", faster.by_chance());
        assert!(faster.faster(0.01).unwrap().lo < estimate.lo, "a surer interval is wider");
        assert!((faster.seconds()[0].value - 2.05).abs() < 0.06, "{:?}", faster.seconds());
    }

    #[test]
    fn what_is_now_faster_and_now_slower_is_chance() {
        let same = pairs(&[(1.0, 1.1), (1.1, 1.0), (1.0, 1.05), (1.05, 1.0)]);
        assert!(same.by_chance() > 0.9, "{}", same.by_chance());
        let estimate = same.faster(0.05).unwrap();
        assert!(estimate.lo < 1.0 && estimate.hi > 1.0, "{estimate:?}");
        assert!((pairs(&[(2.0, 1.0)]).by_chance() - 1.0).abs() < 1e-9, "one pair");
        assert!(pairs(&[]).faster(0.05).is_none() && pairs(&[(2.0, 1.0)]).faster(0.05).is_none());
    }

    /// The same program twice, some of whose runs are disturbed: how often that is called a gain.
    #[test]
    fn chance_is_seldom_called_a_gain() {
        let mut rng = Rng::new(5);
        let mut run = || {
            let noise = (0..12).map(|_| rng.below(1000) as f64 / 1000.0 - 0.5).sum::<f64>();
            let disturbed = if rng.below(20) == 0 { 1.3 } else { 1.0 };
            (1.0 + 0.02 * noise) * disturbed
        };
        for number in [2, 4, 6, 10] {
            let mut gains = 0;
            for _ in 0..2000 {
                let mut pairs = Pairs::default();
                for _ in 0..number {
                    let (without, with) = (run(), run());
                    pairs.push(without, with);
                }
                gains += usize::from(pairs.faster(0.05).unwrap().lo > 1.0);
            }
            assert!(gains <= 100, "{gains} of 2000 by {number} pairs");
        }
    }
}
