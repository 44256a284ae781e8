//! The words of an area that belong to the supervisor; only this room writes them.

use crate::counting::order::NUMBER;
use crate::layout::area::Area;
use crate::layout::context::Context;
use crate::supervisor::figures::STAGE_NS;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64};
use runtime_abi::control::Control;

/// What the supervisor orders of the thread, which reads it: in a cache line that the supervisor
/// seldom writes.
#[repr(C, align(64))]
pub(crate) struct OrderWords {
    /// Whether guests take part, and what is counted: see [`crate::counting::count`].
    pub(super) order: AtomicU32,
    /// The most guests that it may have, as its pace says.
    pub(super) most: AtomicU32,
    /// The guest whose stays are to be timed.
    pub(super) suspect: AtomicPtr<Context>,
    /// Ticks: the longest stage, the longest absence, and the most after which a yield came too
    /// soon for a miss.
    pub(super) stage_ticks: AtomicU64,
    pub(super) absence_ticks: AtomicU64,
    pub(super) soon_ticks: AtomicU64,
}

impl OrderWords {
    /// As of an area that is made, with this first order.
    pub(crate) fn reset(&self, order: u32) {
        self.suspect.store(null_mut(), Relaxed);
        self.order.store(order, Relaxed);
        self.most.store(u32::MAX, Relaxed);
    }

    /// Orders something anew, whatever was ordered before. The thread sees it when it is hooked.
    pub(super) fn give(&self, what: u32) {
        let number = self.order.load(Relaxed) & !(NUMBER - 1);
        self.order.store(number.wrapping_add(NUMBER) | what, Release);
    }

    /// Sets the limits of what is counted, by the ticks in a nanosecond (`rate`).
    pub(super) fn set_limits(&self, page: &Control, rate: f64) {
        let ticks = |ns: u64| (ns as f64 * rate) as u64;
        self.stage_ticks.store(ticks(STAGE_NS), Relaxed);
        self.absence_ticks.store(ticks(page.max_absence_ns), Relaxed);
        self.soon_ticks.store(ticks(page.soon_ns), Relaxed);
    }

    pub(crate) fn order(&self) -> u32 {
        self.order.load(Acquire)
    }

    pub(crate) fn suspect(&self) -> *mut Context {
        self.suspect.load(Acquire)
    }

    pub(crate) fn stage_ticks(&self) -> u64 {
        self.stage_ticks.load(Relaxed)
    }

    pub(crate) fn absence_ticks(&self) -> u64 {
        self.absence_ticks.load(Relaxed)
    }

    pub(crate) fn soon_ticks(&self) -> u64 {
        self.soon_ticks.load(Relaxed)
    }

    /// For tests of other rooms, which play the supervisor.
    #[cfg(test)]
    pub(crate) fn for_test(&self) -> TestOrders<'_> {
        let Self { order, suspect, stage_ticks, absence_ticks, .. } = self;
        TestOrders { order, suspect, stage_ticks, absence_ticks }
    }
}

/// The words that tests of other rooms write in the supervisor's place.
#[cfg(test)]
pub(crate) struct TestOrders<'a> {
    pub(crate) order: &'a AtomicU32,
    pub(crate) suspect: &'a AtomicPtr<Context>,
    pub(crate) stage_ticks: &'a AtomicU64,
    pub(crate) absence_ticks: &'a AtomicU64,
}

#[repr(C, align(64))]
pub(crate) struct SupervisorWords {
    /// Guests in inbox and ring.
    pub(super) guests: AtomicU32,
    /// Descriptor of its `/proc/…/stat`, plus one, in the supervisor's process.
    pub(super) stat_fd: AtomicI32,
    /// The same of its `/proc/…/schedstat`.
    pub(super) ran_fd: AtomicI32,
    /// The processor its thread was seen on last.
    pub(super) cpu: AtomicU32,
    /// What it did when it was polled last: see [`super::processes`].
    pub(super) slept: AtomicU32,
    /// Until when its thread takes no guests, since it slept.
    pub(super) no_guests_after_sleep: AtomicU64,
    /// When it was polled last.
    pub(super) polled_at: AtomicU64,
    /// How often it was seen asleep at no yield.
    pub(super) sleeps_seen: AtomicU32,
    /// Its entries and yields when it was seen to come to one last, when that was, and its CPU time
    /// then: see [`super::stalls::no_yield`], as for what follows.
    pub(super) met_entries: AtomicU32,
    pub(super) met_yields: AtomicU64,
    pub(super) met_at: AtomicU64,
    pub(super) met_ran: AtomicU64,
    /// It was hooked since then, to see whether it comes to any yield at all.
    pub(super) probed: AtomicU32,
    /// It came to none, and its guests were taken: how often in a row; zero: it came to one since.
    /// Its entries then, and until when it gets none.
    pub(super) no_yield_times: AtomicU32,
    pub(super) no_yield_entries: AtomicU32,
    /// Home: how often in a row it had to go, until when it is not boarded again.
    pub(super) offences: AtomicU32,
    pub(super) no_guests_until: AtomicU64,
    pub(super) banned_until: AtomicU64,
    /// Home: ticks that it stays aboard at a time, as measured last.
    pub(super) stay: AtomicU64,
    /// The filters of system calls that its thread had first, plus one, and when that was asked
    /// last.
    pub(super) filters: AtomicU64,
    pub(super) filters_at: AtomicU64,
    /// Home: when its thread was seen parked.
    pub(super) parked_at: AtomicU64,
    /// Home: its CPU time at a moment, whether it had work then, and whether it hardly had any CPU
    /// time up to then.
    pub(super) home_ran: AtomicU64,
    pub(super) home_ran_at: AtomicU64,
    pub(super) has_work: AtomicU32,
    pub(super) starves: AtomicU32,
    /// Home: the primary's area that its context may still be met in, and which thread's it was, at
    /// which entry and sleep.
    pub(super) redirected_by: AtomicPtr<Area>,
    pub(super) redirected_tid: AtomicI32,
    pub(super) redirected_entries: AtomicU32,
    pub(super) redirected_sleeps: AtomicU32,
}

impl SupervisorWords {
    /// As of an area that is made. Descriptors stay: they are closed when an area is given back.
    pub(crate) fn reset(&self) {
        for word in [
            &self.guests,
            &self.offences,
            &self.sleeps_seen,
            &self.met_entries,
            &self.probed,
            &self.no_yield_times,
            &self.slept,
            &self.has_work,
            &self.starves,
        ] {
            word.store(0, Relaxed);
        }
        for time in [
            &self.no_guests_after_sleep,
            &self.polled_at,
            &self.parked_at,
            &self.met_yields,
            &self.met_at,
            &self.met_ran,
            &self.no_guests_until,
            &self.banned_until,
            &self.stay,
            &self.filters,
            &self.filters_at,
            &self.home_ran,
            &self.home_ran_at,
        ] {
            time.store(0, Relaxed);
        }
        self.cpu.store(u32::MAX, Relaxed);
        self.redirected_by.store(null_mut(), Relaxed);
    }

    /// Guests in inbox and ring.
    pub(crate) fn guests(&self) -> u32 {
        self.guests.load(Acquire)
    }
}
