//! The pace of a primary's thread without guests, from samples of it. Pure: samples in, a pace out.
//!
//! Samples differ by a tenth for reasons that are not the thread's: what the memory does meanwhile,
//! and the host. All samples of one guest phase are compared with one solo pace; were that the last
//! sample alone, one phase would seem dear and the next one cheap. Cheap phases last longer, so
//! more would be lost than the samples show. So several samples count, the latest most, until one
//! differs by far: then the thread has turned to other work.

use super::samples::PaceMean;
use crate::supervisor::figures::{FAR_SLOWER, LATEST_WEIGHT, OTHER_WORK};

/// Zero is one that has not begun.
#[derive(Clone, Copy, Default)]
pub(crate) struct SoloPace {
    /// None where yields are rare.
    mean: Option<PaceMean>,
    samples: u32,
}

impl SoloPace {
    pub(crate) fn mean(&self) -> Option<PaceMean> {
        self.mean
    }

    /// Whether a sample is slower by far: guests displaced what the thread had in its caches, or it
    /// has turned to other work.
    pub(crate) fn is_slower(&self, ticks: f64) -> bool {
        self.mean.is_some_and(|mean| ticks > FAR_SLOWER * mean.ticks[0])
    }

    /// Adds a sample; `None`: yields were too rare for one.
    pub(crate) fn add_sample(&mut self, new: Option<PaceMean>) {
        let same =
            |(old, new): &(PaceMean, PaceMean)| (new.ticks[0] / old.ticks[0] - 1.0).abs() <= OTHER_WORK;
        let Some((old, new)) = self.mean.zip(new).filter(same) else {
            *self = Self { mean: new, samples: u32::from(new.is_some()) };
            return;
        };
        self.samples += 1;
        let weight = (1.0 / f64::from(self.samples)).max(LATEST_WEIGHT);
        let ticks = [0, 1].map(|i| old.ticks[i] + (new.ticks[i] - old.ticks[i]) * weight);
        self.mean = Some(PaceMean { ticks, error: old.error + (new.error - old.error) * weight });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(solo: &mut SoloPace, ticks: f64) {
        solo.add_sample(Some(PaceMean { ticks: [ticks; 2], error: 1.0 }));
    }

    /// Seventeen samples that differ by 8 % or so.
    const NOISE: [i32; 17] = [3, -9, 11, -2, 8, -14, 6, -7, 1, 12, -5, -11, 9, 4, -8, 13, -10];

    #[test]
    fn looks_that_differ_count_together() {
        let mut solo = SoloPace::default();
        for (at, noise) in NOISE.iter().enumerate() {
            sample(&mut solo, 300.0 * (1.0 + f64::from(*noise) / 100.0));
            let ticks = solo.mean().expect("samples").ticks;
            assert!(at < 4 || (ticks[0] / 300.0 - 1.0).abs() < 0.05, "{at}: {ticks:?}");
        }
        assert_eq!(solo.samples, 17);
    }

    #[test]
    fn other_work_is_followed_at_once_and_drift_soon() {
        let mut solo = SoloPace::default();
        (0..10).for_each(|_| sample(&mut solo, 300.0));
        sample(&mut solo, 500.0);
        assert!(solo.mean().is_some_and(|mean| mean.ticks[0] > 499.0) && solo.samples == 1);
        (0..10).for_each(|_| sample(&mut solo, 500.0));
        (0..10).for_each(|_| sample(&mut solo, 550.0));
        assert!(solo.mean().is_some_and(|mean| mean.ticks[0] > 545.0));
        solo.add_sample(None);
        assert!(solo.mean().is_none());
    }
}
