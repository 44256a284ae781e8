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
    /// While something is counted: when it last went round a busy-wait, and what PASSES and `count`
    /// were then.
    pub(super) turned: AtomicU64,
    pub(super) turned_passes: AtomicI64,
    pub(super) turned_count: AtomicI32,
    /// Busy-waits with guests that took longer than an absence may.
    pub(super) long_turns: AtomicU32,
    /// Of what it does between its waits ([`crate::counting::busy_waits`]): ticks of the present
    /// lap; the shortest turn; the usual ticks of a piece of work.
    pub(super) lap_ticks: AtomicU64,
    pub(super) shortest_turn: AtomicU64,
    pub(super) usual_work: AtomicU64,
    /// Ticks that it busy-waited, of those since counting began; when that was, and up to when.
    pub(super) idle: AtomicU64,
    pub(super) idle_since: AtomicU64,
    pub(super) idle_until: AtomicU64,
    /// Busy-waits with guests, of any length.
    pub(super) all_turns: AtomicU32,
}

impl CountingWords {
    /// As of an area that is made, whose guests begin with this order.
    pub(crate) fn reset(&self, order: u32) {
        for word in [&self.done, &self.stage, &self.taken, &self.no_clock] {
            word.store(0, Relaxed);
        }
        self.obeyed.store(order, Relaxed);
        self.usual_work.store(0, Relaxed);
        self.shortest_turn.store(0, Relaxed);
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

    /// Samples of the present stage.
    pub(crate) fn taken(&self) -> u32 {
        self.taken.load(Relaxed)
    }

    /// Yields in a lap, with guests or without.
    pub(crate) fn lap(&self, guests: bool) -> i32 {
        self.laps[usize::from(guests)].load(Relaxed)
    }

    /// When it last went round a busy-wait, in ticks; 0: not since counting began.
    pub(crate) fn turned(&self) -> u64 {
        self.turned.load(Relaxed)
    }

    /// Busy-waits with guests that took longer than an absence may.
    pub(crate) fn long_turns(&self) -> u32 {
        self.long_turns.load(Relaxed)
    }

    /// Busy-waits with guests, of any length.
    pub(crate) fn all_turns(&self) -> u32 {
        self.all_turns.load(Relaxed)
    }

    /// The share of the counted time for which the thread busy-waited.
    pub(crate) fn busy_wait_share(&self) -> f64 {
        let [idle, since, until] =
            [&self.idle, &self.idle_since, &self.idle_until].map(|ticks| ticks.load(Relaxed) as f64);
        if until > since { (idle / (until - since)).min(1.0) } else { 0.0 }
    }
}
