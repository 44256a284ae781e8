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

use crate::counting::order::GUESTS;
use crate::layout::area::Area;
use crate::layout::context::Context;
use crate::switching::gauge_words::TIMED;
use crate::switching::links;
use crate::switching::loans::{self, VisitEnd};
use core::arch::x86_64::_rdtsc;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use runtime_abi::control::trip;

/// Yields of the first lap, which only says how long they take here.
const FIRST: u32 = 32;
/// Yields at least and at most to warm up, and of a lap that is timed.
const LEAST: u32 = 16;
const MOST: u32 = 2048;
/// Of how many parts of the time to warm up each lap is that is timed.
const PARTS: u64 = 6;
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
