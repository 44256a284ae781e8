//! How fast a scavenger's program runs alone: a *gauge* times a number of its yields at home.
//!
//! Aboard, each stay of a guest ends at one of its yields, and yields stand at the same places of
//! the program wherever it runs. So the time that as many of them take at home says what its time
//! aboard was worth.
//!
//! ```text
//!   hooked home: yield ─► gleaner_park ─► `left` above zero: counts down, goes on
//!                                      ├► `laps_left` above zero: notes the time, begins a lap
//!                                      └► park ─► goes_on: begins a gauge, or ends it and parks
//! ```
//!
//! A gauge is a few yields to see how many there are, some to warm up, since a thread that comes
//! from a switch of the kernel's finds its caches and predictions gone, and then some short laps
//! that are timed: some 80 µs in all. Their median counts: on the only processor others come
//! between, not least the supervisor. It is taken where a home's thread would park, or on a visit
//! home that the supervisor orders for it.

use crate::counting::count::{self, GUESTS};
use crate::layout::area::Area;
use crate::layout::context::Context;
use crate::switching::links;
use crate::switching::loans::{self, VisitEnd};
use core::arch::x86_64::_rdtsc;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64};
use runtime_abi::control::trip;

/// Yields of the first lap, which only says how long they take here;
const FIRST: u32 = 32;
/// and at least and at most of those to warm up, and of a lap that is timed.
const LEAST: u32 = 16;
const MOST: u32 = 2048;
/// Laps that are timed, and of how many parts of the time to warm up each.
const TIMED: usize = 7;
const PARTS: u64 = 6;
/// A context that is in no ring has joined none at this turn.
const NO_RING: u64 = u64::MAX;

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
    stage: AtomicU32,
    /// Home: when the first lap began. The thread's.
    began: AtomicU64,
    /// Home: a gauge is to be taken, with so many ticks to warm up. The supervisor's; the thread
    /// takes it.
    pub(crate) due: AtomicU32,
    warm_ticks: AtomicU32,
    /// Home: how many were taken, and what the last one says: ticks of a turn, a floating-point
    /// number by its bits. The thread's.
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
        for word in [&self.stage, &self.laps_left, &self.due, &self.warm_ticks, &self.taken] {
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
        let (joined, now) = (self.joined.load(Acquire), turns_of(host));
        // Where the host takes it out meanwhile, the host adds them.
        let mine = joined != NO_RING && self.joined.compare_exchange(joined, now, AcqRel, Relaxed).is_ok();
        let there = if mine { now.saturating_sub(joined) } else { 0 };
        self.turns.swap(0, Relaxed) + there
    }

    /// Ticks of a turn, by the median of the laps that were timed.
    fn median(&self) -> f64 {
        let times: [u64; TIMED + 1] = core::array::from_fn(|at| self.times[at].load(Relaxed));
        let mut laps: [u64; TIMED] = core::array::from_fn(|at| times[at].saturating_sub(times[at + 1]));
        laps.sort_unstable();
        laps[TIMED / 2] as f64 / f64::from(self.lap_yields.load(Relaxed) + 1)
    }

    /// Supervisor: the context is in no ring any more, and all its turns are taken.
    pub(crate) fn is_off(&self) {
        self.joined.store(NO_RING, Relaxed);
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
    let joined = words.joined.swap(NO_RING, AcqRel);
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
    let stage = words.stage.load(Relaxed);
    words.left.store(0, Relaxed);
    words.laps_left.store(0, Relaxed);
    words.stage.store(0, Relaxed);
    match stage {
        0 => {
            let ticks = words.due.swap(0, Acquire);
            if ticks == 0 {
                return false;
            }
            words.warm_ticks.store(ticks, Relaxed);
            words.began.store(now, Relaxed);
            words.left.store(FIRST as i32 - 1, Relaxed);
        }
        1 => {
            let took = now.saturating_sub(words.began.load(Relaxed)).max(1);
            let yields = |parts: u64| {
                let wanted = u64::from(words.warm_ticks.load(Relaxed)) / parts * u64::from(FIRST) / took;
                (wanted.min(u64::from(MOST)) as u32).max(LEAST) as i32 - 1
            };
            words.lap_yields.store(yields(PARTS), Relaxed);
            words.left.store(yields(1), Relaxed);
            words.laps_left.store(TIMED as u32 + 1, Relaxed);
        }
        _ => {
            words.ticks.store(words.median().to_bits(), Relaxed);
            words.taken.store(words.taken.load(Relaxed).wrapping_add(1), Release);
            return false;
        }
    }
    words.stage.store(stage + 1, Relaxed);
    true
}
