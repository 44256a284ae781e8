//! How fast the time stamp counter goes.

use core::arch::x86_64::_rdtsc;
use core::sync::atomic::Ordering::Relaxed;
use runtime_abi::control::Control;

/// The time stamp counter against the clock.
pub(super) struct Clock {
    ticks: u64,
    ns: u64,
    /// Ticks in a nanosecond; 0 while that is not known.
    pub(super) rate: f64,
}

impl Clock {
    pub(super) fn new(now: u64) -> Self {
        Self { ticks: ticks(), ns: now, rate: 0.0 }
    }

    pub(super) fn follow(&mut self, page: &Control, now: u64) {
        let ns = now.saturating_sub(self.ns);
        // Later it is exact enough, and no thread's business is to be disturbed for it.
        if ns > 1_000_000 {
            let gone = ticks().saturating_sub(self.ticks);
            self.rate = gone as f64 / ns as f64;
            page.clock_ticks.store(gone, Relaxed);
            page.clock_ns.store(ns, Relaxed);
        }
    }
}

fn ticks() -> u64 {
    // SAFETY: see `count`.
    unsafe { _rdtsc() }
}
