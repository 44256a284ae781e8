//! The ring of a primary's area: its own context and the guests aboard.
//!
//! ```text
//!   own ──NEXT──► guest 1 ──NEXT──► guest 2 ──NEXT──► own      PREV leads the other way
//!   own ──NEXT──► control ──NEXT──► guest 1 …                  hooked: own.NEXT = control
//! ```
//!
//! Only the primary's thread changes it, and only at its slow places: [`control`], [`leave`], and
//! where a fault or signal is handled. The supervisor has two ways in:
//!
//! - It *hooks*: own.NEXT becomes the control context, so at its next yield the thread comes to
//!   [`control`]. The control context's NEXT is own's successor at all times, hooked or not, and
//!   only the side that works on the ring writes it (`links::set_first`). So every thread may hook.
//! - It takes the whole chain of a thread that sleeps in the kernel ([`take_all`]), under the
//!   area's lock, which the thread asks for before it goes beyond a hook, and without which it goes
//!   on alone.
//!
//! In a solo phase guests are *aside*, out of the ring; while something is counted, counters are in
//! it ([`crate::counting::count`]).
//!
//! No system calls here but for a signal that was put off, no waiting.

use crate::counting::count;
use crate::layout::area::{Area, follow, lock};
use crate::layout::context::Context;
use crate::switching::labels;
use crate::switching::leaves;
use crate::switching::links;
pub(crate) use crate::switching::links::{
    abandon, append, dismiss, first, hook, is_empty, is_hooked, may_park, modes, take_out, unhook,
};
use crate::switching::loans::{self, VisitEnd};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use runtime_abi::control::trip;

/// A primary's thread follows the supervisor's hook: takes guests in, sends back those that are
/// wanted at home. Returns the context to go on with.
pub(crate) extern "C" fn control(area: &'static Area) -> *mut Context {
    let own = area.own();
    if area.lock.compare_exchange(lock::FREE, lock::THREAD, AcqRel, Relaxed).is_err() {
        // The supervisor is taking the guests away. It stays hooked, asks again at the next yield,
        // and meets no context before.
        return own.pointer();
    }
    area.thread.control_entries.store(area.thread.control_entries.load(Relaxed).wrapping_add(1), Release);
    count::gather(area);
    let mut arrived = area.inbox.swap(null_mut(), AcqRel);
    if !arrived.is_null() {
        let modes = modes();
        while !arrived.is_null() {
            // SAFETY: contexts in an inbox are alive.
            let guest = unsafe { &*arrived };
            arrived = guest.link.load(Relaxed);
            if area.closed.load(Relaxed) != 0 {
                dismiss(guest, trip::ENDED);
            } else if guest.modes.load(Relaxed) != modes {
                dismiss(guest, trip::MODES);
            } else {
                append(area, guest);
            }
        }
    }
    let all = area.closed.load(Relaxed) != 0;
    let mut at = area.control().next.load(Acquire);
    while at != own.pointer() {
        // SAFETY: as above.
        let guest = unsafe { &*at };
        at = guest.next.load(Relaxed);
        let wanted = guest.recall.load(Relaxed);
        if all || wanted != 0 {
            take_out(area, guest);
            dismiss(guest, if wanted == 0 { trip::ENDED } else { wanted as usize });
        }
    }
    count::arrange(area);
    let first = area.control().next.load(Acquire);
    own.next.store(first, Release);
    area.lock.store(lock::FREE, Release);
    loans::slice(area);
    first
}

/// The current guest of a primary's thread leaves; its registers are in its frame. Returns the
/// context to go on with.
pub(crate) extern "C" fn leave(area: &'static Area) -> *mut Context {
    let guest = follow!(area.twin.cur);
    let next = take_out(area, guest);
    let home = guest.home();
    leaves::count(&home.scavenger().leave, home.frame().rip.load(Relaxed));
    home.frame().yield_rip.store(0, Relaxed);
    guest.rip.store(labels::restore_address() as u64, Relaxed);
    if loans::visit(area, guest, trip::LEAVE) == VisitEnd::None {
        dismiss(guest, trip::LEAVE);
    }
    next
}

/// A signal came meanwhile. Returns the context to go on with, if the program did not go on with
/// its handler.
pub(crate) extern "C" fn deferred(area: &'static Area, next: *mut Context) -> *mut Context {
    area.switching.deferred.store(0, Relaxed);
    crate::signals::entry::catch_up(area);
    next
}

/// Takes all guests off a ring whose thread does not run it: it sleeps, is gone, or is the caller.
/// Under the area's lock. Calls `each` with every one of them, at a yield and in no ring.
pub(crate) fn take_all(area: &Area, mut each: impl FnMut(&'static Context)) {
    let own = area.own();
    for first in [first(area), area.thread.aside.swap(null_mut(), Relaxed)] {
        let mut at = first;
        while !at.is_null() && at != own.pointer() {
            // SAFETY: as above.
            let guest: &'static Context = unsafe { &*at };
            at = guest.next.load(Relaxed);
            links::alone(guest);
            if !area.is_counter(guest.pointer()) {
                each(guest);
            }
        }
    }
    own.prev.store(own.pointer(), Relaxed);
    area.control().next.store(own.pointer(), Release);
    if !is_hooked(area) {
        own.next.store(own.pointer(), Release);
    }
    take_inbox(area, each);
}

/// Takes back the contexts that have not joined the ring yet.
pub(crate) fn take_inbox(area: &Area, mut each: impl FnMut(&'static Context)) {
    let mut arrived = area.inbox.swap(null_mut(), AcqRel);
    while !arrived.is_null() {
        // SAFETY: as above.
        let guest: &'static Context = unsafe { &*arrived };
        arrived = guest.link.load(Relaxed);
        each(guest);
    }
}

/// Supervisor: gives a parked context to a primary's area.
pub(crate) fn offer(area: &'static Area, guest: &Context) {
    guest.link.store(area.inbox.load(Acquire), Relaxed);
    while let Err(now) =
        area.inbox.compare_exchange(guest.link.load(Relaxed), guest.pointer(), AcqRel, Acquire)
    {
        guest.link.store(now, Relaxed);
    }
}
