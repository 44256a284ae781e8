//! Whether another hyperthread works on this core: how many independent adds it finishes per cycle.
//!
//! Another hyperthread takes execution units, and on many processors half of the re-order buffer,
//! whether it belongs to this system or, in a guest, to another one that cannot be seen otherwise.
//! Alone, four independent chains of adds finish as many adds a cycle as the core has adders, at
//! most four, less what its scheduler loses: 2% on a Zen 4, 5% on a Zen 5, always the same. Beside
//! another hyperthread they finish fewer, and how many varies with its work.
//!
//! Two cases stay unseen: a hyperthread that only waits for memory, and one that takes the same
//! small share all the time.

use crate::code::Loaded;
use crate::stats;
use crate::sys::SysError;
use crate::tsc;
use kernels::{Spec, assemble};

const UNROLL: u32 = 256;
/// About 1.5 µs at 4 GHz.
const LOOPS_PER_READING: u64 = 20;
/// The median of this many readings.
const READINGS: usize = 3;
/// The share that is lost at the ends of a reading, and to changes of the clock.
const TOLERATED_LOSS: f64 = 0.04;
/// The share that a scheduler may lose of what its adders could do.
const SCHEDULER_LOSS: f64 = 0.07;
/// Readings within this share of a good one are like it; where this part of all readings is like
/// it, the core was alone then.
const ALIKE_WITHIN: f64 = 0.015;
const STEADY_SHARE: f64 = 0.3;
/// The number of latest readings that are remembered.
const READINGS_KEPT: usize = 1 << 12;
/// After this many readings the best is computed anew.
const RENEW_AFTER_READINGS: usize = 64;

/// Takes readings, and remembers the best.
#[derive(Debug)]
pub(crate) struct CoreWidth {
    kernel: Loaded,
    adds_per_loop: u64,
    /// Ticks of calling the kernel and reading the counter.
    overhead: u64,
    seen: BestReadings,
}

impl CoreWidth {
    pub(crate) fn new() -> Result<Self, SysError> {
        let kernel = assemble(&Spec::Spin { unroll: UNROLL }).expect("the kernel's parameter is constant");
        let adds_per_loop = kernel.ops_per_loop;
        let mut core_width =
            Self { kernel: Loaded::new(kernel)?, adds_per_loop, overhead: 0, seen: BestReadings::default() };
        core_width.overhead = (0..256).map(|_| core_width.ticks(0)).min().unwrap_or(0);
        core_width.ticks(LOOPS_PER_READING);
        Ok(core_width)
    }

    /// Adds per core cycle, now, on a CPU whose clock makes `cycles_per_tick` cycles in a tick.
    pub(crate) fn take(&mut self, cycles_per_tick: f64) -> f64 {
        let mut readings: [f64; READINGS] = std::array::from_fn(|_| {
            let ticks = self.ticks(LOOPS_PER_READING).saturating_sub(self.overhead).max(1);
            (LOOPS_PER_READING * self.adds_per_loop) as f64 / ticks as f64 / cycles_per_tick
        });
        readings.sort_by(f64::total_cmp);
        let reading = readings[READINGS / 2];
        self.seen.note(reading);
        reading
    }

    /// Whether this reading shows another hyperthread at work.
    pub(crate) fn is_shared(&self, reading: f64) -> bool {
        self.seen.is_shared(reading)
    }

    fn ticks(&self, loops: u64) -> u64 {
        let from = tsc::now();
        // SAFETY: the kernel touches no memory and takes only a loop count.
        unsafe {
            self.kernel.call(std::ptr::null_mut(), loops, std::ptr::null_mut(), std::ptr::null_mut());
        }
        tsc::end().0 - from
    }
}

/// Readings, and what a whole core finishes according to the best of them.
#[derive(Debug, Default)]
struct BestReadings {
    readings: Vec<f64>,
    taken: usize,
    whole: f64,
}

impl BestReadings {
    fn note(&mut self, reading: f64) {
        if self.readings.len() < READINGS_KEPT {
            self.readings.push(reading);
        } else {
            self.readings[self.taken % READINGS_KEPT] = reading;
        }
        self.taken += 1;
        if self.taken <= RENEW_AFTER_READINGS || self.taken % RENEW_AFTER_READINGS == 0 {
            self.whole = whole(&self.readings);
        }
    }

    fn is_shared(&self, reading: f64) -> bool {
        reading < self.whole * (1.0 - TOLERATED_LOSS)
    }
}

/// What the core finishes when no other hyperthread works. The very best readings are luck: a clock
/// that fell meanwhile. Good readings come up to a whole number, or lie close together not far
/// below it; where they do neither, the core was never alone.
fn whole(readings: &[f64]) -> f64 {
    let sorted = stats::sorted(readings);
    let good = stats::quantile_sorted(&sorted, 0.9);
    let adders = (good - TOLERATED_LOSS).ceil().clamp(1.0, 4.0);
    let alike = sorted.iter().filter(|&&r| (r - good).abs() < ALIKE_WITHIN * good).count();
    let steady = alike as f64 > STEADY_SHARE * sorted.len() as f64;
    if steady && good > adders * (1.0 - SCHEDULER_LOSS) { good.min(adders) } else { adders }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn remembered(readings: impl Iterator<Item = f64>) -> BestReadings {
        let mut seen = BestReadings::default();
        readings.for_each(|r| seen.note(r));
        seen
    }

    #[test]
    fn the_whole_core_is_known_by_its_best_moments() {
        let mut rng = Rng::new(1);
        let mut around = |value: f64, spread: f64| value - spread * (rng.below(1000) as f64 / 1000.0);
        // Alone on cores with two to four adders or more.
        for adders in [2.0, 3.0, 4.0] {
            let alone = remembered((0..500).map(|_| around(adders * 0.987, 0.02)));
            assert!((adders * 0.96..=adders).contains(&alone.whole), "{}", alone.whole);
            assert!(!alone.is_shared(adders * 0.95) && alone.is_shared(adders * 0.9));
        }
        // On a Zen 5, whose scheduler loses one add of twenty: alone most of the time, else beside
        // another hyperthread.
        let zen5 =
            remembered((0..500).map(|i| if i % 3 == 0 { around(3.5, 1.5) } else { around(3.83, 0.03) }));
        assert!((3.79..3.84).contains(&zen5.whole), "{}", zen5.whole);
        assert!(!zen5.is_shared(3.74) && zen5.is_shared(3.6));
        // Beside another hyperthread four times of five, as seen on a Zen 4; and all the time.
        let mixed: Vec<f64> =
            (0..500).map(|i| if i % 5 == 0 { around(3.945, 0.03) } else { around(3.5, 1.5) }).collect();
        assert_eq!(remembered(mixed.into_iter()).whole, 4.0);
        let never_alone: Vec<f64> = (0..500).map(|_| around(3.5, 1.5)).collect();
        assert_eq!(remembered(never_alone.into_iter()).whole, 4.0);
        // A clock that fell between the two readings is not a wider core.
        let lucky = (0..500).map(|i| if i % 50 == 0 { 3.4 } else { 2.96 });
        assert!((2.9..=3.0).contains(&remembered(lucky).whole));
    }

    #[test]
    fn a_change_of_the_best_is_noticed() {
        let seen = remembered((0..3 * READINGS_KEPT).map(|i| if i < READINGS_KEPT { 2.9 } else { 3.95 }));
        assert!((3.9..=4.0).contains(&seen.whole), "{}", seen.whole);
        assert_eq!(seen.readings.len(), READINGS_KEPT);
    }

    #[test]
    fn readings_are_believable() {
        let mut core_width = CoreWidth::new().unwrap();
        let core_clock = crate::core_clock::CoreClock::new().unwrap();
        let best = (0..50).map(|_| core_width.take(core_clock.cycles_per_tick())).fold(0.0, f64::max);
        assert!((0.2..40.0).contains(&best), "{best}");
        assert!(core_width.is_shared(0.0) && !core_width.is_shared(4.0));
    }
}
