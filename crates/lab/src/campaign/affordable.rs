//! Which settings there is time for, where there is not for all. Pure.

use std::time::Duration;

/// What a setting needs for a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Need {
    pub(super) setting: usize,
    pub(super) seconds: f64,
}

/// Seconds for a block of each setting.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    expected: Vec<f64>,
    /// Seconds and blocks so far.
    taken: Vec<(f64, u32)>,
}

impl Costs {
    pub(super) fn expected(expected: impl Iterator<Item = Duration>) -> Self {
        let expected: Vec<f64> = expected.map(|time| time.as_secs_f64()).collect();
        Self { taken: vec![(0.0, 0); expected.len()], expected }
    }

    pub(super) fn took(&mut self, setting: usize, time: Duration) {
        let (seconds, blocks) = &mut self.taken[setting];
        *seconds += time.as_secs_f64();
        *blocks += 1;
    }

    /// What blocks of the setting took, or without one what was expected, by the factor by which
    /// others took longer than that.
    pub(super) fn of(&self, setting: usize) -> f64 {
        let (seconds, blocks) = self.taken[setting];
        if blocks > 0 { seconds / f64::from(blocks) } else { self.expected[setting] * self.longer() }
    }

    fn longer(&self) -> f64 {
        let known = || self.taken.iter().zip(&self.expected).filter(|((_, blocks), _)| *blocks > 0);
        let expected: f64 = known().map(|((_, blocks), expected)| f64::from(*blocks) * expected).sum();
        let taken: f64 = known().map(|((seconds, _), _)| seconds).sum();
        if expected > 0.0 { (taken / expected).max(1.0) } else { 1.0 }
    }
}

/// The cheapest settings that fit into the time, cheapest first, at least one; `None` where all do.
pub(super) fn chosen(needs: &[Need], seconds: f64) -> Option<Vec<usize>> {
    if needs.iter().map(|need| need.seconds).sum::<f64>() <= seconds {
        return None;
    }
    let mut cheapest = needs.to_vec();
    cheapest.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let mut sum = 0.0;
    let fits = |need: &Need| {
        sum += need.seconds;
        sum <= seconds
    };
    let count = cheapest.iter().copied().take_while(fits).count().max(1);
    Some(cheapest.iter().take(count).map(|need| need.setting).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(seconds: &[f64]) -> Vec<Need> {
        seconds.iter().enumerate().map(|(setting, &seconds)| Need { setting, seconds }).collect()
    }

    #[test]
    fn the_cheapest_are_chosen_where_time_is_short() {
        assert_eq!(chosen(&needs(&[3.0, 1.0, 2.0]), 6.0), None);
        assert_eq!(chosen(&needs(&[3.0, 1.0, 2.0]), 5.0), Some(vec![1, 2]));
        assert_eq!(chosen(&needs(&[3.0, 1.0, 2.0]), 0.5), Some(vec![1]), "one is better than none");
        assert_eq!(chosen(&[], 0.0), None);
    }

    #[test]
    fn costs_are_those_of_blocks_or_expected_by_their_factor() {
        let milliseconds = Duration::from_millis;
        let mut costs = Costs::expected([10, 20, 0].map(milliseconds).into_iter());
        let near = |is: f64, should: f64| assert!((is - should).abs() < 1e-9, "{is} {should}");
        near(costs.of(1), 0.020);
        costs.took(0, milliseconds(40));
        costs.took(0, milliseconds(20));
        near(costs.of(0), 0.030);
        near(costs.of(1), 0.060);
        costs.took(2, milliseconds(1));
        near(costs.of(2), 0.001);
    }
}
