//! Do two CPUs slow each other down? A guest is often not told which of its CPUs share a core;
//! running both at once shows it.
//!
//! One CPU runs a busy loop that uses all of a core's adders, alone and then beside the same loop
//! on another CPU. On two cores nothing changes but, a little, the clock; on two threads of one
//! core each gets about half.

use crate::code::Loaded;
use crate::pin::Pinned;
use crate::rigs::{Rig, SpinRig};
use crate::rng::Rng;
use crate::stats;
use crate::sys::{self, SysError};
use kernels::{Spec, assemble};
use std::sync::atomic::{AtomicU32, Ordering};

/// Slower by this factor means a shared core: it is more than any clock falls when more cores are
/// busy, and less than any shared core costs.
const SLOWED_RATIO: f64 = 1.3;
/// About 100 µs of spinning.
const LOOPS: u64 = 100_000;
const ROUNDS: usize = 15;
/// A machine with more pairs than this has a sample of them tried.
const MOST_PAIRS: usize = 120;

/// What running pairs of CPUs showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HyperthreadPairs {
    pub tried: usize,
    /// Pairs that slow each other down, the smaller number first.
    pub slowed: Vec<(usize, usize)>,
}

/// Tries pairs of these CPUs: all if they are few, else those `claimed` and a random sample.
pub fn hyperthread_pairs(
    cpus: &[usize],
    claimed: &[(usize, usize)],
    seed: u64,
) -> Result<HyperthreadPairs, SysError> {
    let kernel = assemble(&Spec::Spin { unroll: 1 }).expect("the spinning kernel's parameter is constant");
    let spin = Loaded::new(kernel)?;
    let mut found = HyperthreadPairs::default();
    for (a, b) in pairs(cpus, claimed, seed) {
        found.tried += 1;
        if ratio(&spin, a, b)? > SLOWED_RATIO {
            found.slowed.push((a, b));
        }
    }
    Ok(found)
}

fn pairs(cpus: &[usize], claimed: &[(usize, usize)], seed: u64) -> Vec<(usize, usize)> {
    let mut all: Vec<(usize, usize)> =
        cpus.iter().enumerate().flat_map(|(i, &a)| cpus[i + 1..].iter().map(move |&b| (a, b))).collect();
    Rng::new(seed).shuffle(&mut all);
    all.sort_by_key(|pair| !claimed.contains(pair));
    all.truncate(MOST_PAIRS);
    all.sort_unstable();
    all
}

/// How much longer the loop takes on `a` while `b` runs it too. Alone and together take turns, so
/// that a clock that drifts or a neighbour that comes and goes hits both alike.
fn ratio(spin: &Loaded, a: usize, b: usize) -> Result<f64, SysError> {
    const REST: u32 = 0;
    const RUN: u32 = 1;
    const RUNNING: u32 = 2;
    const END: u32 = 3;
    let state = AtomicU32::new(REST);
    let _pinned = Pinned::to(a)?;
    let mut rig = SpinRig::new(spin.clone());
    std::thread::scope(|scope| {
        let partner = sys::spawn_scoped(scope, || {
            let pinned = Pinned::to(b);
            let mut rig = SpinRig::new(spin.clone());
            loop {
                match state.load(Ordering::Acquire) {
                    END => return pinned.map(|_| ()),
                    REST => std::thread::sleep(std::time::Duration::from_micros(20)),
                    _ => {
                        rig.run(LOOPS / 20);
                        // Set only once the loop has run here, so that what follows is timed beside
                        // it.
                        let _ = state.compare_exchange(RUN, RUNNING, Ordering::AcqRel, Ordering::Relaxed);
                    }
                }
            }
        })?;
        let (mut alone, mut together) = (Vec::new(), Vec::new());
        rig.warm();
        for _ in 0..ROUNDS {
            alone.push(rig.run(LOOPS)[0]);
            state.store(RUN, Ordering::Release);
            while state.load(Ordering::Acquire) == RUN && !partner.is_finished() {
                std::thread::yield_now();
            }
            together.push(rig.run(LOOPS)[0]);
            state.store(REST, Ordering::Release);
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
        state.store(END, Ordering::Release);
        partner.join().expect("the spinning thread does not panic")?;
        Ok(stats::median(&together) / stats::median(&alone))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pairs_of_few_and_the_claimed_ones_of_many() {
        assert_eq!(pairs(&[0, 3, 5], &[], 1), [(0, 3), (0, 5), (3, 5)]);
        let many: Vec<usize> = (0..256).collect();
        let claimed: Vec<(usize, usize)> = (0..64).map(|i| (i, i + 128)).collect();
        let chosen = pairs(&many, &claimed, 1);
        assert_eq!(chosen.len(), MOST_PAIRS);
        assert!(claimed.iter().all(|pair| chosen.contains(pair)));
    }

    #[test]
    fn every_pair_is_tried_once() {
        let cpus = crate::pin::allowed().unwrap();
        let found = hyperthread_pairs(&cpus[..cpus.len().min(3)], &[], 1).unwrap();
        let n = cpus.len().min(3);
        assert_eq!(found.tried, n * (n - 1) / 2);
        assert!(found.slowed.iter().all(|(a, b)| a < b));
    }
}
