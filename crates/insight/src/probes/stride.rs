//! How far apart the addresses are that a load reads one after the other: the probes of a burst are
//! of executions that follow one another.

use super::latency::BETWEEN_BURSTS_NS;
use crate::samples::tally::Probe;
use std::collections::HashMap;

/// Steps that are alike before there is a stride.
const STEADY: f64 = 0.7;
/// Fewer steps tell nothing.
const LEAST_STEPS: usize = 16;

/// The step from one address to the next in bytes, which may be negative; `None` if there is no
/// usual one, or if it stays where it is.
pub(crate) fn stride(probes: &[Probe]) -> Option<i64> {
    let mut ordered: Vec<&Probe> = probes.iter().collect();
    ordered.sort_by_key(|probe| (probe.kept.sample.thread, probe.kept.sample.time_ns));
    let is_next = |pair: &&[&Probe]| {
        let [one, two] = [pair[0].kept.sample, pair[1].kept.sample];
        one.thread == two.thread && two.time_ns - one.time_ns < BETWEEN_BURSTS_NS
    };
    let steps: Vec<i64> = ordered
        .windows(2)
        .filter(is_next)
        .map(|pair| pair[1].address.wrapping_sub(pair[0].address) as i64)
        .collect();
    if steps.len() < LEAST_STEPS {
        return None;
    }
    let mut counts: HashMap<i64, usize> = HashMap::new();
    for step in &steps {
        *counts.entry(*step).or_default() += 1;
    }
    let (step, count) = counts.into_iter().max_by_key(|&(step, count)| (count, std::cmp::Reverse(step)))?;
    (step != 0 && count as f64 >= STEADY * steps.len() as f64).then_some(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::heap::AllNear;
    use crate::samples::tally::{Kept, Sample};

    /// Bursts of eight, as probes come.
    fn probes(address: impl Fn(u64) -> u64) -> Vec<Probe> {
        let probe = |n: u64| {
            let time_ns = n / 8 * 50_000_000 + n % 8 * 25_000;
            let sample =
                Sample { process: 1, thread: 1, time_ns, in_kernel: false, ip: None, registers: None };
            Probe {
                kept: Kept { sample, near: AllNear::default() },
                address: address(n / 8).wrapping_add((n % 8).wrapping_mul(address(0))),
                ticks: (60, 50),
                is_steady: false,
            }
        };
        (0..64).map(probe).collect()
    }

    #[test]
    fn steps_within_bursts_tell() {
        assert_eq!(stride(&probes(|burst| 4096 + burst * 1_000_003)), Some(4096));
        let down = probes(|burst| ((-64_i64) as u64).wrapping_add(burst * 999_983));
        assert_eq!(stride(&down), Some(-64));
        assert_eq!(stride(&probes(|burst| burst * 7)), None, "it stays where it is");
        assert_eq!(stride(&probes(|_| 64)[..12]), None, "too few");
        let mut mixed = probes(|burst| 64 + burst * 1000);
        for (n, probe) in mixed.iter_mut().enumerate() {
            probe.address = probe.address.wrapping_mul(n as u64 * n as u64);
        }
        assert_eq!(stride(&mixed), None);
    }
}
