//! Random numbers from a seed, so that the same records give the same verdicts.

use std::f64::consts::TAU;
use units::Rng;

pub(crate) struct Random(Rng);

impl Random {
    /// One for each figure, so that a further figure does not change what is said of the others.
    pub(crate) fn of(seed: u64, name: &str) -> Self {
        Self(Rng::new(seed).fork(name))
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.below(end as u64) as usize
    }

    /// Above zero, and one at most.
    fn share(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Normally distributed, with mean 0 and variance 1 (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.share().ln()).sqrt() * (TAU * self.share()).cos()
    }
}
