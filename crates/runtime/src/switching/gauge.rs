//! How fast a scavenger's program runs alone: a *gauge* times a number of its yields at home.
//!
//! Aboard, each stay of a guest ends at one of its yields, and yields stand at the same places of
//! the program wherever it runs. So the time that as many of them take at home says what its time
//! aboard was worth.
//!
//! ```text
//!   hooked home: yield ─► gleaner_park ─► LEFT above zero: counts down, goes on
//!                                      └► zero: park ─► goes_on: begins a gauge, or its next part,
//!                                                       or notes its ticks, and parks
//! ```
//!
//! A gauge is a lap to warm up, and one that is timed: some 40 µs in all. It is taken where a home's
//! thread would park, or on a visit home that the supervisor orders for it.

use crate::counting::count::{self, GUESTS};
use crate::layout::area::Area;
use crate::layout::context::Context;
use crate::switching::links;
use crate::switching::loans::{self, VisitEnd};
use core::arch::x86_64::_rdtsc;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64};
use runtime_abi::control::trip;

/// Yields before the time is taken, and while it is.
const WARM: i32 = 32;
pub(crate) const TIMED: i32 = 96;
/// A context that is in no ring has joined none at this turn.
const NO_RING: u64 = u64::MAX;

/// The words of an area that belong to gauges.
#[repr(C)]
pub(crate) struct GaugeWords {
    /// Home: yields to come before it parks. The thread's: here the assembly counts down.
    pub(crate) left: AtomicI32,
    /// Home: in which lap it is; 0: in none. The thread's.
    lap: AtomicU32,
    /// Home: when the lap that is timed began. The thread's.
    began: AtomicU64,
    /// Home: a gauge is to be taken. The supervisor's; the thread takes it.
    pub(crate) due: AtomicU32,
    /// Home: how many were taken, and the ticks of the last one. The thread's.
    pub(crate) taken: AtomicU32,
    pub(crate) ticks: AtomicU64,
    /// Home: turns of rings that its context took part in, but for the ring that it is in now. The
    /// host's; the supervisor takes them.
    turns: AtomicU64,
    /// Home: the turn of its host's ring at which it joined that. The host's.
    joined: AtomicU64,
    /// Primary's: turns of its ring while guests were aside, and at which turn they went there. The
    /// thread's, hooked.
    aside: AtomicU64,
    aside_since: AtomicU64,
    /// Primary's: the guest that is to be sent on a visit for a gauge. The supervisor's; the thread
    /// takes it.
    pub(crate) guest: AtomicPtr<Context>,
}

impl GaugeWords {
    /// As of an area that is made.
    pub(crate) fn reset(&self) {
        self.left.store(0, Relaxed);
        for word in [&self.lap, &self.due, &self.taken] {
            word.store(0, Relaxed);
        }
        for word in [&self.began, &self.ticks, &self.turns, &self.aside] {
            word.store(0, Relaxed);
        }
        self.joined.store(NO_RING, Relaxed);
        self.aside_since.store(NO_RING, Relaxed);
        self.guest.store(null_mut(), Relaxed);
    }

    /// Supervisor: all turns that this home's context took part in since this was asked last, also
    /// in the ring of the host that it is in or was in when that ended.
    pub(crate) fn take_turns(&self, host: &Area) -> u64 {
        let joined = self.joined.swap(NO_RING, Relaxed);
        let now = if joined == NO_RING { 0 } else { turns_of(host).saturating_sub(joined) };
        self.turns.swap(0, Relaxed) + now
    }
}

/// How often the thread's ring went round with all its guests.
fn turns_of(area: &Area) -> u64 {
    let words = area.gauge();
    let (all, since) = (count::yields(area), words.aside_since.load(Relaxed));
    let now = if since == NO_RING { 0 } else { all.saturating_sub(since) };
    all.saturating_sub(words.aside.load(Relaxed) + now)
}

/// A guest joins the ring. The thread's.
pub(crate) fn joins(area: &Area, guest: &Context) {
    guest.home().gauge().joined.store(turns_of(area), Relaxed);
}

/// A guest was taken out of the ring. The thread's.
pub(crate) fn parts(area: &Area, guest: &Context) {
    let words = guest.home().gauge();
    let joined = words.joined.swap(NO_RING, Relaxed);
    if joined != NO_RING {
        words.turns.fetch_add(turns_of(area).saturating_sub(joined), Relaxed);
    }
}

/// All guests go aside, or come back. The thread's, hooked.
pub(crate) fn aside(area: &Area, are: bool) {
    let words = area.gauge();
    let (now, since) = (count::yields(area), words.aside_since.load(Relaxed));
    if are && since == NO_RING {
        words.aside_since.store(now, Relaxed);
    } else if !are && since != NO_RING {
        words.aside.store(words.aside.load(Relaxed) + now.saturating_sub(since), Relaxed);
        words.aside_since.store(NO_RING, Relaxed);
    }
}

/// The thread is in the control context, and its ring in order: sends the guest that the supervisor
/// named on a visit home, to be timed there. Returns the ring's first context if it did.
pub(crate) fn visit(area: &'static Area) -> Option<*mut Context> {
    let named = area.gauge().guest.swap(null_mut(), Acquire);
    let ordered = area.orders.order();
    let takes_part = ordered & GUESTS != 0 && area.thread.aside.load(Relaxed).is_null();
    if named.is_null() || !takes_part || !links::holds(area, named) {
        return None;
    }
    // SAFETY: contexts of a ring are alive.
    let guest: &'static Context = unsafe { &*named };
    if loans::may_visit(area, guest) {
        links::take_out(area, guest);
        if loans::visit(area, guest, trip::GAUGED) == VisitEnd::None {
            links::append(area, guest);
        }
    }
    Some(links::first(area))
}

/// A home's thread is about to park: whether it goes on to its next yields first, to be timed. Its
/// hook stays.
pub(crate) fn goes_on(area: &Area) -> bool {
    let words = area.gauge();
    // SAFETY: every x86-64 has a time stamp counter, and a thread that may not read it, by a filter
    // of its own, has an area that is settled.
    let now = unsafe { _rdtsc() };
    let lap = words.lap.load(Relaxed);
    let yields = match lap {
        0 if words.due.swap(0, Acquire) != 0 => WARM,
        1 => TIMED,
        _ => 0,
    };
    words.left.store((yields - 1).max(0), Relaxed);
    if yields == 0 {
        words.lap.store(0, Relaxed);
        if lap != 0 {
            words.ticks.store(now.saturating_sub(words.began.load(Relaxed)), Relaxed);
            words.taken.store(words.taken.load(Relaxed).wrapping_add(1), Release);
        }
        return false;
    }
    words.lap.store(lap + 1, Relaxed);
    words.began.store(now, Relaxed);
    true
}
