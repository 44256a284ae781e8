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

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Uniform in `0..n`; `n` must not be 0. The bias of the multiplication method is below 2^-32
    /// for every `n` here.
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

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A keyed permutation of `0..n`, computed and not stored: a four-round Feistel network over the
/// next even power of two, walked until it falls into range. A gigabyte of chain needs no side
/// table with it.
#[derive(Clone, Debug)]
pub struct Permutation {
    n: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    pub fn new(n: u64, rng: &mut Rng) -> Self {
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        let half_bits = bits.div_ceil(2).max(1);
        Self { n, half_bits, keys: std::array::from_fn(|_| rng.next_u64()) }
    }

    pub fn len(&self) -> u64 {
        self.n
    }

    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Where `i` goes. `i` must be below `n`.
    pub fn at(&self, i: u64) -> u64 {
        debug_assert!(i < self.n);
        let mut x = i;
        loop {
            x = self.round_trip(x);
            if x < self.n {
                return x;
            }
        }
    }

    fn round_trip(&self, x: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (x >> self.half_bits, x & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mix(right ^ key) & mask));
        }
        (left << self.half_bits) | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutation_hits_everything_once() {
        let mut rng = Rng::new(7);
        for n in [1u64, 2, 3, 5, 64, 65, 1000, 4096, 5000] {
            let p = Permutation::new(n, &mut rng);
            let mut seen = vec![false; n as usize];
            for i in 0..n {
                let x = p.at(i) as usize;
                assert!(!seen[x], "{n}: {x} twice");
                seen[x] = true;
            }
        }
    }

    #[test]
    fn permutation_leaves_no_stride() {
        // A prefetcher learns constant differences; hardly any two neighbours may share one.
        let p = Permutation::new(1 << 14, &mut Rng::new(1));
        let mut repeats = 0;
        for i in 2..(1u64 << 14) {
            let (a, b, c) = (p.at(i - 2) as i64, p.at(i - 1) as i64, p.at(i) as i64);
            repeats += u32::from(b - a == c - b);
        }
        assert!(repeats < 16, "{repeats} constant strides");
    }

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
