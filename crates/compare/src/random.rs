//! Random numbers from a seed (`SplitMix64`), so that the same records give the same verdicts.

use std::f64::consts::TAU;

pub(crate) struct Random(u64);

impl Random {
    /// One for each figure, so that a further figure does not change what is said of the others.
    pub(crate) fn of(seed: u64, name: &str) -> Self {
        let hash = |h: u64, byte: u8| (h ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let mut random = Self(name.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, hash));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Above zero, and one at most.
    fn share(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Normally distributed, with mean 0 and variance 1 (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.share().ln()).sqrt() * (TAU * self.share()).cos()
    }
}
