//! Random orders: permutations from the seeded generator of `units`.

pub use units::Rng;
use units::random::mix;

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
}
