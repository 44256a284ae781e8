//! A scavenger's thread at home gives its context away and sleeps until it is back.

use crate::area::{Area, Context, settled, state};
use crate::{ring, sys};
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
    // Its handlers would run beside the program, which is elsewhere. They wait; the butler fetches it home for them.
    let mask = sys::set_signal_mask(u64::MAX);
    area.parked_mask.store(mask, Relaxed);
    own.modes.store(ring::modes(), Relaxed);
    own.state.store(state::PARKED, Release);
    loop {
        match own.state.load(Acquire) {
            state::HOME => break,
            now => sys::futex_wait(&own.state, now),
        }
    }
    sys::set_signal_mask(mask);
    own.pointer()
}
