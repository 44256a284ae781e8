//! The words of an area that belong to gauges ([`super::gauge`]).

use crate::layout::context::Context;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64};

/// Laps that are timed.
pub(super) const TIMED: usize = 7;

/// The words of an area that belong to gauges.
#[repr(C)]
pub(crate) struct GaugeWords {
    /// Home: yields to come before it parks. The thread's: here the assembly counts down.
    pub(crate) left: AtomicI32,
    /// Home: yields of a lap that is timed, less one; laps whose beginning or end is still to be
    /// noted; and these times, the last one first. The assembly's, once the thread has set the two.
    pub(crate) lap_yields: AtomicI32,
    pub(crate) laps_left: AtomicU32,
    pub(crate) times: [AtomicU64; TIMED + 1],
    /// Home: its stage; 0: none. The thread's.
    pub(super) stage: AtomicU32,
    /// Home: when the first lap began. The thread's.
    pub(super) began: AtomicU64,
    /// Home: a gauge is to be taken, with this many ticks to warm up. The supervisor's; the thread
    /// takes it.
    pub(crate) due: AtomicU32,
    pub(super) warm_ticks: AtomicU32,
    /// Home: how many were taken, and what the last one says: ticks of a turn, a floating-point
    /// number by its bits. The thread's.
    pub(crate) taken: AtomicU32,
    pub(crate) ticks: AtomicU64,
    /// Primary's: the guest that is to be sent on a visit for a gauge. The supervisor's; the thread
    /// takes it.
    pub(crate) guest: AtomicPtr<Context>,
}

impl GaugeWords {
    /// As of an area that is made.
    pub(crate) fn reset(&self) {
        self.left.store(0, Relaxed);
        for word in [&self.stage, &self.laps_left, &self.due, &self.warm_ticks, &self.taken] {
            word.store(0, Relaxed);
        }
        for word in [&self.began, &self.ticks] {
            word.store(0, Relaxed);
        }
        self.guest.store(null_mut(), Relaxed);
    }

    /// Ticks of a turn, by the median of the laps that were timed.
    pub(super) fn median(&self) -> f64 {
        let times: [u64; TIMED + 1] = core::array::from_fn(|at| self.times[at].load(Relaxed));
        let mut laps: [u64; TIMED] = core::array::from_fn(|at| times[at].saturating_sub(times[at + 1]));
        laps.sort_unstable();
        laps[TIMED / 2] as f64 / f64::from(self.lap_yields.load(Relaxed) + 1)
    }
}
