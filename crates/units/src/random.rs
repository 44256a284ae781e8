//! A small seeded generator (SplitMix64): runs are repeatable from the seed in their record, on any
//! version of any dependency.

/// The generator of that name by Steele, Lea and Flood; one addition and a few multiplications a
/// number.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator of its own for the part of a run that `label` names, so that adding one
    /// experiment does not reshuffle the others.
    #[must_use]
    pub fn fork(&self, label: &str) -> Self {
        let mut h = self.0 ^ 0xcbf2_9ce4_8422_2325;
        for b in label.bytes() {
            h = (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3);
        }
        let mut forked = Self(h);
        forked.next_u64();
        forked
    }

    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Uniform in `0..n`; `n` must not be 0. The bias of the multiplication method is below 2^-32
    /// for every `n` here.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "empty range");
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i as u64 + 1) as usize;
            items.swap(i, j);
        }
    }
}

/// All bits of a number from all of another.
#[inline]
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_differ_and_repeat() {
        let r = Rng::new(42);
        assert_ne!(r.fork("latency").next_u64(), r.fork("mlp").next_u64());
        assert_eq!(r.fork("tlb").next_u64(), r.fork("tlb").next_u64());
    }

    #[test]
    fn below_is_even() {
        let mut rng = Rng::new(3);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[rng.below(7) as usize] += 1;
        }
        assert!(counts.iter().all(|&c| (9_500..10_500).contains(&c)), "{counts:?}");
    }
}
