//! The core clock: core cycles per tick of the time stamp counter, measured with a chain of
//! dependent adds.
//!
//! A reading is exact to parts of a million, but the clock wanders by percents within seconds. So
//! the interval of a clock is not that of the readings' median, which shrinks with every reading,
//! but the range in which readings of another time lie: [`over_time`].

use crate::code::Loaded;
use crate::stats;
use crate::sys::SysError;
use crate::tsc;
use kernels::{Spec, assemble};
use units::{Estimate, student};

const UNROLL: u32 = 256;
/// About 7 µs at 4 GHz: long against the steps of the counter, short against changes of the clock.
const LOOPS_PER_READING: u64 = 112;
/// A measurement is the median of this many readings, so that one interrupt does not look like a
/// slow clock.
const READINGS: usize = 3;

/// The instructions that the clock is measured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockChain {
    /// Adds, one cycle each.
    Adds,
    /// Multiplications, three cycles each.
    Muls,
}

/// Measures the core clock.
#[derive(Clone, Debug)]
pub struct CoreClock {
    chain: Loaded,
    cycles_per_loop: u64,
    /// Ticks of calling the kernel and reading the counter: a third of a percent of a reading.
    overhead: u64,
}

impl CoreClock {
    pub fn new() -> Result<Self, SysError> {
        Self::of(ClockChain::Adds)
    }

    pub fn of(chain: ClockChain) -> Result<Self, SysError> {
        let (spec, cycles) = match chain {
            ClockChain::Adds => (Spec::Adds { unroll: UNROLL }, 1),
            ClockChain::Muls => (Spec::Muls { unroll: UNROLL / 3 }, 3),
        };
        let kernel = assemble(&spec).expect("the clock kernel's parameters are constant");
        let cycles_per_loop = kernel.ops_per_loop * cycles;
        let mut clock = Self { chain: Loaded::new(kernel)?, cycles_per_loop, overhead: 0 };
        clock.overhead = (0..256).map(|_| clock.ticks(0)).min().unwrap_or(0);
        clock.cycles_per_tick();
        Ok(clock)
    }

    /// Core cycles per tick, now, on this CPU.
    pub fn cycles_per_tick(&self) -> f64 {
        let mut readings: [f64; READINGS] = std::array::from_fn(|_| self.reading(LOOPS_PER_READING));
        readings.sort_by(f64::total_cmp);
        readings[READINGS / 2]
    }

    /// The same from one reading that is `factor` times as long, where precision matters more than
    /// time.
    pub fn precise(&self, factor: u64) -> f64 {
        self.reading(LOOPS_PER_READING * factor)
    }

    fn reading(&self, loops: u64) -> f64 {
        let ticks = self.ticks(loops).saturating_sub(self.overhead);
        (loops * self.cycles_per_loop) as f64 / ticks.max(1) as f64
    }

    fn ticks(&self, loops: u64) -> u64 {
        let from = tsc::now();
        // SAFETY: the kernel touches no memory and takes only a loop count.
        unsafe {
            self.chain.call(std::ptr::null_mut(), loops, std::ptr::null_mut(), std::ptr::null_mut());
        }
        tsc::end().0 - from
    }
}

/// Stretches of time that are compared with each other.
const STRETCHES: usize = 8;
/// How often the next stretch may lie farther beside the mean of those than is said.
const MISSED: f64 = 0.05;

/// The clock by readings in the order of their times: their median, and where those of another time
/// are to be expected. That is the range of 95% of the readings, and of a stretch of time that
/// differs from them as they differ from each other. `None` without readings.
pub fn over_time(cycles_per_tick: &[f64]) -> Option<Estimate> {
    if cycles_per_tick.is_empty() {
        return None;
    }
    // An interrupt makes one reading slow, but not the median of three.
    let steady: Vec<f64> = cycles_per_tick.chunks(READINGS).map(stats::median).collect();
    let sorted = stats::sorted(&steady);
    let middle = stats::quantile_sorted(&sorted, 0.5);
    let (mut lo, mut hi) = (stats::quantile_sorted(&sorted, 0.025), stats::quantile_sorted(&sorted, 0.975));
    let stretches: Vec<f64> = steady.chunks(steady.len().div_ceil(STRETCHES)).map(stats::median).collect();
    if stretches.len() == STRETCHES {
        let mean = stretches.iter().sum::<f64>() / STRETCHES as f64;
        let squares: f64 = stretches.iter().map(|stretch| (stretch - mean).powi(2)).sum();
        let count = STRETCHES as f64;
        let deviations = student::beyond(MISSED, count - 1.0) * (1.0 + 1.0 / count).sqrt();
        let reach = deviations * (squares / (count - 1.0)).sqrt();
        (lo, hi) = (lo.min(middle - reach), hi.max(middle + reach));
    }
    Some(Estimate::new(middle, lo, hi))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// A second's readings, a tenth of a percent apart from each other, in stretches that wander.
    fn second(seed: u64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        let mut uniform = |wide: f64| wide * (rng.below(10_001) as f64 / 10_000.0 - 0.5);
        (0..8)
            .flat_map(|_| {
                let stretch = 1.25 * (1.0 + uniform(0.01));
                (0..300).map(|_| stretch * (1.0 + uniform(0.001))).collect::<Vec<_>>()
            })
            .collect()
    }

    #[test]
    fn another_second_lies_in_the_interval() {
        let medians: Vec<f64> = (0..100).map(|seed| stats::median(&second(seed))).collect();
        for seed in 0..20 {
            let clock = over_time(&second(1000 + seed)).unwrap();
            let held = medians.iter().filter(|&&median| clock.contains(median)).count();
            assert!(held >= 90, "{held} of 100 in {clock:?}");
            assert!(clock.relative_half_width() < 0.015, "{clock:?}");
        }
    }

    #[test]
    fn interrupts_are_not_the_clock() {
        let mut readings = vec![1.5; 900];
        readings.iter_mut().step_by(20).for_each(|reading| *reading = 1.2);
        assert_eq!(over_time(&readings), Some(Estimate::exact(1.5)));
        assert_eq!(over_time(&[1.5]), Some(Estimate::exact(1.5)));
        assert_eq!(over_time(&[]), None);
    }

    #[test]
    fn gives_a_believable_ratio() {
        // Between a core at a tenth of the counter's rate and one at ten times it.
        let clock = CoreClock::new().unwrap();
        let best = (0..50).map(|_| clock.cycles_per_tick()).fold(0.0, f64::max);
        assert!((0.1..10.0).contains(&best), "{best}");
    }
}
