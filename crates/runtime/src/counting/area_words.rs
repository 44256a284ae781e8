//! The words of an area that belong to counting. The thread's; only this room writes them.

use crate::counting::order::COUNTING;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64};

/// The fewest yields in a lap.
pub(crate) const FEW: i32 = 16;
/// Most samples of a stage; rows of samples.
pub(crate) const SAMPLES: usize = 64;
pub(crate) const ROWS: usize = 3;

/// The row where a stage's samples are.
pub(crate) mod row {
    pub(crate) const PLAIN: usize = 0;
    pub(crate) const ABOARD: usize = 0;
    pub(crate) const ABSENCE: usize = 1;
    pub(crate) const STAY: usize = 2;
}

#[repr(C, align(64))]
pub(crate) struct CountingWords {
    /// The order that the thread has taken note of, and the one it has carried out.
    pub(super) obeyed: AtomicU32,
    pub(super) done: AtomicU32,
    /// What is counted now, how many samples of it there are, and yields until the next.
    pub(super) stage: AtomicU32,
    pub(super) taken: AtomicU32,
    pub(super) count: AtomicI32,
    /// Yields in a lap without guests, and with them.
    pub(super) laps: [AtomicI32; 2],
    /// It may not read the time stamp counter, so no times are counted.
    pub(super) no_clock: AtomicU32,
    /// What PASSES was set to last, and how many yields met a context before that.
    pub(super) passes_were: AtomicI64,
    pub(super) met: AtomicU64,
    /// Ticks: when the stage began, when counting went on last, when the primary went away.
    pub(super) stage_began: AtomicU64,
    pub(super) resumed: AtomicU64,
    pub(super) away: AtomicU64,
    /// Where it yielded last.
    pub(super) last_yield: AtomicU64,
}

impl CountingWords {
    /// As of an area that is made, whose guests begin with this order.
    pub(crate) fn reset(&self, order: u32) {
        for word in [&self.done, &self.stage, &self.taken, &self.no_clock] {
            word.store(0, Relaxed);
        }
        self.obeyed.store(order, Relaxed);
        self.passes_were.store(-1, Relaxed);
        self.met.store(0, Relaxed);
        for lap in &self.laps {
            lap.store(FEW, Relaxed);
        }
    }

    /// Something is being counted.
    pub(crate) fn is_under_way(&self) -> bool {
        let order = self.obeyed.load(Relaxed);
        order & COUNTING != 0 && order != self.done.load(Relaxed)
    }

    /// The order that the thread has taken note of.
    pub(crate) fn obeyed(&self) -> u32 {
        self.obeyed.load(Acquire)
    }

    /// The order that the thread has carried out.
    pub(crate) fn done(&self) -> u32 {
        self.done.load(Acquire)
    }

    pub(crate) fn stage(&self) -> u32 {
        self.stage.load(Relaxed)
    }

    /// Yields in a lap, with guests or without.
    pub(crate) fn lap(&self, guests: bool) -> i32 {
        self.laps[usize::from(guests)].load(Relaxed)
    }
}
