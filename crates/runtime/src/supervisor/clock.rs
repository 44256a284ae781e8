//! The rate of the time stamp counter, in ticks per nanosecond.
//!
//! Counter and clock are read one after the other. Another thread or a hypervisor's guest that
//! takes the processor between the two keeps it for milliseconds, and the rate would be wrong by as
//! much as that is of the time since the beginning. So a reading that took long is tried again, and
//! two readings are used only where the time between them is long against what they are uncertain
//! by.

use crate::supervisor::figures::{
    CLOCK_FIRST_READING_NS, CLOCK_READINGS_MOST_NS, CLOCK_TRIES, CLOCK_UNCERTAINTY_PART,
};
use crate::sys;
use core::arch::x86_64::_rdtsc;
use core::sync::atomic::Ordering::Relaxed;
use runtime_abi::control::Control;

/// The counter and the clock at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClockReading {
    ticks: u64,
    /// The ticks that it took.
    took: u64,
    ns: u64,
}

impl ClockReading {
    fn now(ticks: &mut impl FnMut() -> u64, ns: &mut impl FnMut() -> u64) -> Self {
        let mut once = || {
            let began = ticks();
            let ns = ns();
            let took = ticks().saturating_sub(began);
            Self { ticks: began + took / 2, took, ns }
        };
        let mut best = once();
        for _ in 1..CLOCK_TRIES {
            let again = once();
            if again.took < best.took {
                best = again;
            }
        }
        best
    }
}

/// The time stamp counter against the clock.
pub(crate) struct Clock {
    began: ClockReading,
    look_at: u64,
    every: u64,
    /// Ticks in a nanosecond; 0 while that is not known.
    pub(crate) rate: f64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let began = ClockReading::now(&mut ticks, &mut sys::now_ns);
        Self { began, look_at: began.ns + CLOCK_FIRST_READING_NS, every: CLOCK_FIRST_READING_NS, rate: 0.0 }
    }

    pub(crate) fn follow(&mut self, page: &Control, now: u64) {
        if now < self.look_at {
            return;
        }
        if let Some([ticks, ns]) = self.learn(ClockReading::now(&mut ticks, &mut sys::now_ns)) {
            page.clock_ticks.store(ticks, Relaxed);
            page.clock_ns.store(ns, Relaxed);
        }
    }

    /// What passed of both since the beginning, if it is known by this.
    fn learn(&mut self, read: ClockReading) -> Option<[u64; 2]> {
        let [gone, ns] = [read.ticks.saturating_sub(self.began.ticks), read.ns.saturating_sub(self.began.ns)];
        if (read.took + self.began.took).saturating_mul(CLOCK_UNCERTAINTY_PART) > gone || ns == 0 {
            self.look_at = read.ns + CLOCK_FIRST_READING_NS;
            return None;
        }
        self.rate = gone as f64 / ns as f64;
        self.every = (2 * self.every).min(CLOCK_READINGS_MOST_NS);
        self.look_at = read.ns + self.every;
        Some([gone, ns])
    }
}

fn ticks() -> u64 {
    // SAFETY: see `count`.
    unsafe { _rdtsc() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two ticks a nanosecond, a hundred ticks to read either; at those reads the processor is
    /// taken away for 5 ms.
    fn read_at(world: &mut u64, robbed: &[usize]) -> ClockReading {
        let (time, reads) = (std::cell::Cell::new(*world), std::cell::Cell::new(0));
        let step = || {
            reads.set(reads.get() + 1);
            time.set(time.get() + 100 + 10_000_000 * u64::from(robbed.contains(&reads.get())));
            time.get()
        };
        let read = ClockReading::now(&mut || step(), &mut || step() / 2);
        *world = time.get();
        read
    }

    fn clock(began: ClockReading) -> Clock {
        Clock { began, look_at: 0, every: CLOCK_FIRST_READING_NS, rate: 0.0 }
    }

    #[test]
    fn a_processor_that_is_taken_away_amid_a_reading_does_not_change_the_rate() {
        for robbed in [&[][..], &[1], &[2], &[3], &[2, 5], &[1, 4, 8]] {
            let mut world = 5000;
            let mut clock = clock(read_at(&mut world, robbed));
            world += 3_000_000;
            let told = clock.learn(read_at(&mut world, robbed));
            assert!((clock.rate - 2.0).abs() < 0.01, "{robbed:?}: {}", clock.rate);
            assert!(told.is_some());
        }
    }

    #[test]
    fn what_nothing_good_was_read_of_is_not_known_yet() {
        let mut world = 5000;
        let always = [2, 5, 8, 11];
        let mut clock = clock(read_at(&mut world, &always));
        world += 3_000_000;
        assert_eq!(clock.learn(read_at(&mut world, &[])), None);
        assert_eq!(clock.rate.to_bits(), 0);
        // In the end even that is little of what passed.
        world += 4_000_000_000;
        assert!(clock.learn(read_at(&mut world, &[])).is_some());
        assert!((clock.rate - 2.0).abs() < 0.04, "{}", clock.rate);
    }
}
