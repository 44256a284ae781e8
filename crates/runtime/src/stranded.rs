//! The butler of siblings was killed. Nobody seats or fetches them any more; each that is away fetches itself home, and then all go
//! on at home.
//!
//! The launcher says so in the control page: to ask the kernel, a program may have forbidden itself. Home threads wake now and
//! then to look. A host that comes to yields lets its guest go when it is hooked. From one that stays outside of its twins, or in a handler,
//! guests are taken as the butler would, under its lock; also where the butler died with that in its hands.

use crate::area::{Area, Context, kind, lock, state};
use crate::{ring, sys};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use runtime_abi::control::trip;

/// How often it is looked whether there is a butler, and, where there is none, whether the guest is free.
const NAPS: [u64; 2] = [100_000_000, 1_000_000];

/// Sleeps until somebody brings the calling thread's context home, or it has to be done here.
pub(crate) fn wait(area: &'static Area) {
    let own = area.own();
    let gone = || area.region().page().butler_lost.load(Acquire) != 0;
    loop {
        let now = own.state.load(Acquire);
        if now == state::HOME || gone() && fetch(area, now) {
            return;
        }
        sys::futex_wait_for(&own.state, now, NAPS[usize::from(gone())]);
    }
}

/// Whether the context is at home now.
fn fetch(area: &'static Area, now: u32) -> bool {
    let own = area.own();
    match now {
        // Nobody else changes these.
        state::PARKED | state::LEAVING => {
            own.recall.store(0, Relaxed);
            own.state.store(state::HOME, Release);
            return true;
        }
        _ => {}
    }
    // SAFETY: areas are never unmapped.
    if let Some(host) = unsafe { own.host.load(Relaxed).as_ref() } {
        own.recall.store(trip::FREE as u32, Relaxed);
        ring::hook(host);
        take_guests(host);
    }
    false
}

/// From a host that does not run them: under its lock it comes to the control context before it does, and meets nobody there.
fn take_guests(host: &'static Area) {
    let locked = |from| host.lock.compare_exchange(from, lock::SIBLING, AcqRel, Relaxed).is_ok();
    if !locked(lock::FREE) && !locked(lock::BUTLER) {
        return;
    }
    let cur = host.cur.load(Acquire);
    let outside = host.outside.load(Acquire) != 0;
    let in_handler = cur == host.quiet().pointer() && host.free_hands.load(Acquire) != 0;
    if ring::is_hooked(host) && (outside || in_handler && host.cur.load(Acquire) == cur) {
        host.inbox.store(null_mut(), Relaxed);
        host.own().prev.store(host.own().pointer(), Relaxed);
        ring::abandon(host);
        let region = host.region();
        let there = |guest: &Context| {
            guest.state.load(Acquire) == state::ABOARD && guest.host.load(Relaxed).cast_const() == host
        };
        for slot in (0..region.slots()).filter(|slot| region.tid(*slot) != 0) {
            let guest = region.area(slot);
            if guest.kind.load(Acquire) == kind::PRIMARY && there(guest.own()) {
                guest.own().next.store(guest.own().pointer(), Relaxed);
                guest.own().prev.store(guest.own().pointer(), Relaxed);
                guest.own().state.store(state::PARKED, Release);
                sys::futex_wake(&guest.own().state);
            }
        }
    }
    host.lock.store(lock::FREE, Release);
}
