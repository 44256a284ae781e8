//! Small seeded generators: runs are repeatable from the seed in their record, on any version of
//! any dependency.

/// `SplitMix64` by Steele, Lea and Flood: one addition and a few multiplications a number.
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

/// Marsaglia's xorshift of 64 bits: three shifts a number, for choices in inner loops.
#[derive(Clone, Debug)]
pub struct Xorshift(u64);

impl Xorshift {
    /// The seed must not be 0, from which nothing else follows.
    pub fn new(seed: u64) -> Self {
        assert!(seed != 0, "a seed of 0");
        Self(seed)
    }

    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// In `0..n`, nearly uniform where `n` is far below 2^64; `n` must not be 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        self.next_u64() % n
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
        let (mut rng, mut xorshift) = (Rng::new(3), Xorshift::new(3));
        let mut counts = [[0u32; 7]; 2];
        for _ in 0..70_000 {
            counts[0][rng.below(7) as usize] += 1;
            counts[1][xorshift.below(7) as usize] += 1;
        }
        assert!(counts.as_flattened().iter().all(|&c| (9_500..10_500).contains(&c)), "{counts:?}");
    }

    #[test]
    fn xorshift_is_marsaglias() {
        let mut xorshift = Xorshift::new(88_172_645_463_325_252);
        let first: [u64; 2] = std::array::from_fn(|_| xorshift.next_u64());
        assert_eq!(first, [8_748_534_153_485_358_512, 3_040_900_993_826_735_515]);
    }
}
