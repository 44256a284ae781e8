//! The words of an area that belong to loans ([`super::loans`]).

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};

/// The longest visit, and the shortest slice, in nanoseconds; where the primary answers others, the
/// longest one, too.
pub(crate) const SLICE_NS: u64 = 200_000;
/// The longest slice. Two rounds of the supervisor go with each: with caches that the primary has
/// emptied, some 90 us each, as much as a short slice is worth.
pub(crate) const LONG_SLICE_NS: u64 = 1_000_000;
/// What a loan costs the primary besides its time: afterwards the processor has other predictions
/// and cache contents.
pub(crate) const BESIDES_NS: u64 = 20_000;
/// The words of an area that belong to loans.
#[repr(C)]
pub(crate) struct LoanWords {
    /// Nanoseconds that its thread may lend until the supervisor sets this again.
    pub(crate) allowance: AtomicI64,
    /// Nanoseconds to be lent when it next comes to the control context. The supervisor's; the
    /// thread takes it.
    pub(crate) slice: AtomicU64,
    /// Nanoseconds that its thread has lent, and how often. The thread's.
    pub(crate) lent: AtomicU64,
    pub(crate) times: AtomicU32,
    /// How often it slept for that: never, where the home was quicker, or more than once. The
    /// thread's.
    pub(crate) slept: AtomicU32,
    /// The thread sleeps for a home.
    pub(crate) lending: AtomicU32,
    /// Home: nanoseconds of visits since it boarded; the supervisor takes them. Visits in all.
    pub(crate) visited: AtomicU64,
    pub(crate) visits: AtomicU64,
    /// Home: visits in a row that ended late, and leaves without a visit to come. The lender's.
    pub(super) late: AtomicU32,
    pub(super) without: AtomicU32,
}

impl LoanWords {
    /// As of an area that is made.
    pub(crate) fn reset(&self) {
        for word in [&self.slice, &self.lent, &self.visited, &self.visits] {
            word.store(0, Relaxed);
        }
        for word in [&self.times, &self.slept, &self.lending, &self.late, &self.without] {
            word.store(0, Relaxed);
        }
        self.allowance.store(0, Relaxed);
    }

    /// Supervisor: the thread is to lend a slice, if it may, and does not lend already. For how
    /// long it will.
    pub(crate) fn order_slice(&self, shortest: u64, longest: u64) -> Option<u64> {
        let allowed = u64::try_from(self.allowance.load(Relaxed)).unwrap_or(0);
        let may = allowed >= shortest && self.lending.load(Relaxed) == 0;
        may.then(|| {
            let slice = allowed.min(longest);
            self.slice.store(slice, Relaxed);
            slice
        })
    }
}
