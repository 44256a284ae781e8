//! The words of an area that belong to counting. The thread's; only this room writes them.

use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64};

#[repr(C, align(64))]
pub(crate) struct CountingWords {
    /// The order that the thread has taken note of, and the one it has carried out.
    pub(in crate::counting) obeyed: AtomicU32,
    pub(in crate::counting) done: AtomicU32,
    /// What is counted now, how many samples of it there are, and yields until the next.
    pub(in crate::counting) stage: AtomicU32,
    pub(in crate::counting) taken: AtomicU32,
    pub(in crate::counting) count: AtomicI32,
    /// Yields in a lap without guests, and with them.
    pub(in crate::counting) laps: [AtomicI32; 2],
    /// It may not read the time stamp counter, so no times are counted.
    pub(in crate::counting) no_clock: AtomicU32,
    /// What PASSES was set to last, and how many yields met a context before that.
    pub(in crate::counting) passes_were: AtomicI64,
    pub(in crate::counting) met: AtomicU64,
    /// Ticks: when the stage began, when counting went on last, when the primary went away.
    pub(in crate::counting) stage_began: AtomicU64,
    pub(in crate::counting) resumed: AtomicU64,
    pub(in crate::counting) away: AtomicU64,
    /// Where it yielded last.
    pub(in crate::counting) visited: AtomicU64,
    /// While something is counted: when it last went round a busy-wait, and what PASSES and `count`
    /// were then.
    pub(in crate::counting) turned: AtomicU64,
    pub(in crate::counting) turned_passes: AtomicI64,
    pub(in crate::counting) turned_count: AtomicI32,
    /// Busy-waits with guests that took longer than an absence may.
    pub(in crate::counting) long_turns: AtomicU32,
    /// Of what it does between its waits ([`crate::counting::busy_waits`]): ticks of the present
    /// lap; the shortest turn; the usual ticks of a piece of work.
    pub(in crate::counting) lap_ticks: AtomicU64,
    pub(in crate::counting) shortest_turn: AtomicU64,
    pub(in crate::counting) usual_work: AtomicU64,
    /// Ticks that it busy-waited, of those since counting began; when that was, and up to when.
    pub(in crate::counting) idle: AtomicU64,
    pub(in crate::counting) idle_since: AtomicU64,
    pub(in crate::counting) idle_until: AtomicU64,
    /// Busy-waits with guests, of any length.
    pub(in crate::counting) all_turns: AtomicU32,
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
            lap.store(super::count::FEW, Relaxed);
        }
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
