//! The words of an area that belong to turns ([`super::turns`]).

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// A context that is in no ring has joined none at this turn.
pub(super) const NO_RING: u64 = u64::MAX;

#[repr(C)]
pub(crate) struct TurnWords {
    /// Home: turns of rings that its context took part in, but for the ring that it is in now. The
    /// host's; the supervisor takes them.
    pub(super) turns: AtomicU64,
    /// Home: the turn of its host's ring at which it joined that. The host's, and the supervisor's
    /// by compare-and-swap.
    pub(super) joined: AtomicU64,
    /// Primary's: turns of its ring while guests were aside, and at which turn they went there. The
    /// thread's, hooked.
    pub(super) aside: AtomicU64,
    pub(super) aside_since: AtomicU64,
}

impl TurnWords {
    /// As of an area that is made.
    pub(crate) fn reset(&self) {
        self.turns.store(0, Relaxed);
        self.aside.store(0, Relaxed);
        self.is_off();
        self.aside_since.store(NO_RING, Relaxed);
    }

    /// Supervisor: the context is in no ring any more, and all its turns are taken.
    pub(crate) fn is_off(&self) {
        self.joined.store(NO_RING, Relaxed);
    }
}
