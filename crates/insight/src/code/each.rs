//! How long the core waits each time a load runs.
//!
//! A clock's samples tell the share of time that a load costs, not how often it runs. But the
//! instructions beside it in its basic block run as often, and those that the core does not wait
//! for take about as long as such instructions always do:
//!
//! ```text
//!   samples          instruction
//!                    mov rax, [rdi+8*rcx]     the load
//!   90               add rbx, rax             the core waited for it
//!    1               inc rcx                } 3 samples on 3 instructions
//!    2               cmp rcx, rdx           } that take half a cycle each
//!
//!   each time: 90 ÷ 3 samples × 3 instructions × 0.5 cycles = 45 cycles
//! ```
//!
//! Some samples of the load itself land beside it: as many as of the loop that the clock was
//! calibrated with. These are taken off.
//!
//! A core with four to six instructions a cycle and programs with less than one bound the time of
//! an instruction to between a fifth of a cycle and two cycles: the interval is as wide as that,
//! and as the few samples beside the load make it.

use units::Estimate;

/// Cycles that an instruction takes which the core does not wait for: usual, least, most.
const CYCLES: [f64; 3] = [0.5, 0.2, 2.0];

/// What was sampled in a load's basic block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beside {
    /// Instructions at which a sample means that the core waited for nothing in memory.
    pub instructions: u64,
    /// Samples there.
    pub samples: u64,
}

/// Cycles that the core waits for a load each time it runs, from the samples of that and those
/// beside it. `sharp` is the share of a known load's samples that land right behind it.
pub(crate) fn stall_each(stalled: u64, beside: Beside, sharp: Estimate) -> Estimate {
    let [usual, least, most] = CYCLES;
    let instructions = beside.instructions.max(1) as f64;
    let astray = |sharp: f64| stalled as f64 * (1.0 / sharp.clamp(0.1, 1.0) - 1.0);
    let without = |astray: f64| beside.samples.saturating_sub(astray.ceil() as u64);
    // The calibration is a second before or behind; how sharp the clock is changes with the load of
    // the machine: up to twice as many samples may go astray.
    let (fewest, ..) = poisson(without(2.0 * astray(sharp.lo)));
    let (_, expected, _) = poisson(without(astray(sharp.value)));
    let (.., highest) = poisson(beside.samples);
    let each = |stalled: f64, samples: f64, cycles: f64| stalled / samples * instructions * cycles;
    let (few, _, many) = poisson(stalled);
    Estimate::new(each(stalled as f64, expected, usual), each(few, highest, least), each(many, fewest, most))
}

/// The same, of a load whose latency is known: the core waits no longer for it than it takes, but
/// for what a stall takes to be seen and undone. `ticks_a_ns` is taken for the clock of the core,
/// which may be half as fast again.
pub(crate) fn bounded(each: Estimate, latency_ns: Estimate, ticks_a_ns: f64) -> Estimate {
    const FASTER: f64 = 1.5;
    let most = latency_ns.scaled(ticks_a_ns);
    let value = each.value.min(most.value);
    Estimate::new(value, each.lo.min(value), each.hi.min(FASTER * most.hi))
}

/// The mean that a count is from: its least, likeliest and largest value, nearly 95%. A count of
/// none is from a mean of half a sample.
fn poisson(count: u64) -> (f64, f64, f64) {
    let count = count as f64;
    let root = (count + 0.25).sqrt();
    ((root - 0.98).max(0.0).powi(2).max(0.025), count.max(0.5), (root + 1.4).powi(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARP: Estimate = Estimate { value: 1.0, lo: 1.0, hi: 1.0 };

    #[test]
    fn samples_that_went_astray_are_taken_off() {
        let chase = Beside { instructions: 3, samples: 230 };
        let blurred = Estimate::new(0.955, 0.945, 0.965);
        let each = stall_each(5000, chase, blurred);
        assert!(each.value > 1000.0 && each.lo < 20.0, "{each:?}");
        let computing = stall_each(100, Beside { instructions: 3, samples: 300 }, blurred);
        assert!(computing.value < 1.0, "{computing:?}");
    }

    #[test]
    fn each_time_follows_from_what_runs_as_often() {
        let each = stall_each(9000, Beside { instructions: 3, samples: 300 }, SHARP);
        assert!((each.value - 45.0).abs() < 1e-9, "{each:?}");
        assert!(each.lo > 12.0 && each.lo < 18.0 && each.hi > 180.0 && each.hi < 230.0, "{each:?}");
    }

    #[test]
    fn a_load_that_hits_waits_for_a_cycle_or_two() {
        let each = stall_each(100, Beside { instructions: 3, samples: 300 }, SHARP);
        assert!(each.value < 1.0 && each.hi < 4.0, "{each:?}");
    }

    #[test]
    fn a_chase_has_hardly_a_sample_beside_its_load() {
        let each = stall_each(15_000, Beside { instructions: 2, samples: 0 }, SHARP);
        assert!(each.lo > 1000.0, "{each:?}");
        let few = stall_each(3, Beside { instructions: 2, samples: 0 }, SHARP);
        assert!(few.lo < 1.0 && few.hi > 100.0, "nothing is known: {few:?}");
        assert!(stall_each(0, Beside::default(), SHARP).lo >= 0.0);
    }

    #[test]
    fn intervals_are_those_of_counts() {
        // Garwood's exact intervals: 10 is from 4.8 to 18.4, none from 0 to 3.7.
        let (lo, _, hi) = poisson(10);
        assert!((lo - 4.8).abs() < 0.5 && (hi - 18.4).abs() < 3.0, "{lo} {hi}");
        let (lo, _, hi) = poisson(0);
        assert!(lo < 0.03 && (hi - 3.7).abs() < 0.3, "{lo} {hi}");
    }

    #[test]
    fn a_load_is_not_waited_for_longer_than_it_takes() {
        let latency = Estimate::new(100.0, 80.0, 120.0);
        let wide = Estimate::new(1300.0, 250.0, 10_000.0);
        assert_eq!(bounded(wide, latency, 2.0), Estimate::new(200.0, 200.0, 360.0));
        let low = Estimate::new(50.0, 20.0, 150.0);
        assert_eq!(bounded(low, latency, 2.0), low, "misses that overlap");
    }
}
