//! The core clock: core cycles per tick of the time stamp counter, measured with a chain of
//! dependent adds.

use crate::code::Loaded;
use crate::sys::SysError;
use crate::tsc;
use kernels::{Spec, assemble};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_a_believable_ratio() {
        // Between a core at a tenth of the counter's rate and one at ten times it.
        let clock = CoreClock::new().unwrap();
        let best = (0..50).map(|_| clock.cycles_per_tick()).fold(0.0, f64::max);
        assert!((0.1..10.0).contains(&best), "{best}");
    }
}
