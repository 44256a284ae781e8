//! A scavenger's thread at home gives its context away and sleeps until it is back.

use crate::area::{Area, Context, asked, settled, state};
use crate::{ring, stranded, sys};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Entered from a yield at home by way of the butler's hook, on the slow stack; the own context is saved. Returns it when it
/// is to go on here.
pub(crate) extern "C" fn park(area: &'static Area) -> *mut Context {
    let own = area.own();
    // A child that this process forked has a copy of the area, or (vfork) the area itself, and is not the one to park.
    let mine = sys::getpid() == area.pid.load(Relaxed) && sys::gettid() == area.tid.load(Relaxed);
    own.next.store(own.pointer(), Release);
    if area.lent.load(Relaxed) != 0 {
        return own.pointer(); // until its thread has it again
    }
    if !mine {
        area.settled.fetch_or(settled::FOR_GOOD, Relaxed);
    }
    if area.settled.load(Relaxed) != 0 {
        return own.pointer();
    }
    give_away(area, || true);
    own.pointer()
}

/// The same for a sibling, which comes by way of its ring's control context and has no guests. A signal that was put off on the way
/// is handled first.
pub(crate) fn sibling(area: &'static Area) -> *mut Context {
    let mine = sys::getpid() == area.pid.load(Relaxed) && sys::gettid() == area.tid.load(Relaxed);
    if mine && area.lent.load(Relaxed) == 0 && area.settled.load(Relaxed) == 0 {
        give_away(area, || area.deferred.load(Relaxed) == 0);
    }
    area.asked.store(asked::NOTHING, Release);
    area.own().pointer()
}

/// Sleeps while the context is elsewhere. `free` is asked once no signal can come any more.
fn give_away(area: &'static Area, free: impl FnOnce() -> bool) {
    let own = area.own();
    // Its handlers would run beside the program, which is elsewhere. They wait; the butler fetches it home for them.
    let mask = sys::set_signal_mask(u64::MAX);
    if free() {
        area.parked_mask.store(mask, Relaxed);
        own.modes.store(ring::modes(), Relaxed);
        own.state.store(state::PARKED, Release);
        if area.sibling.load(Relaxed) != 0 {
            stranded::wait(area);
        } else {
            loop {
                match own.state.load(Acquire) {
                    state::HOME => break,
                    now => sys::futex_wait(&own.state, now),
                }
            }
        }
    }
    sys::set_signal_mask(mask);
}
