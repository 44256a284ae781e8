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
//!   only the side that works on the ring writes it ([`set_first`]). So every thread may hook, also
//!   the ring's own ([`crate::switching::switch`], where a sibling leaves its twins).
//! - It takes the whole chain of a thread that sleeps in the kernel ([`take_all`]), under the
//!   area's lock, which the thread asks for before it goes beyond a hook, and without which it goes
//!   on alone.
//!
//! In a solo phase guests are *aside*, out of the ring; while something is counted, counters are in
//! it ([`crate::counting::count`]). Where the primary busy-waits, it goes on with own.SPIN instead
//! of own.NEXT: with the first guest of the ring, or the first of those aside, all of which lead
//! back to own; with the control context where it is hooked; else with itself.
//!
//! No system calls here but for a signal that was put off, no waiting; a sibling that was asked to
//! park does so from here.

use crate::counting::count;
use crate::layout::area::{Area, asked, follow, lock};
use crate::layout::context::{Context, state};
use crate::switching::switch;
use core::arch::asm;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use runtime_abi::control::trip;

/// The first guest, or own itself; hooked or not.
pub(crate) fn first(area: &Area) -> *mut Context {
    area.control().next.load(Acquire)
}

pub(crate) fn is_hooked(area: &Area) -> bool {
    area.own().next.load(Acquire) == area.control().pointer()
}

/// Makes the thread come to the control context at its next yield. A thread on its way out of there
/// may miss it.
pub(crate) fn hook(area: &Area) {
    let (own, control) = (area.own(), area.control().pointer());
    own.next.swap(control, AcqRel);
    own.spin.swap(control, AcqRel); // behind the other: see `control`
}

/// Takes the hook of a home off. Supervisor (which does not want the home any more) and the home's
/// thread (which follows the hook) both try; false for the second one.
pub(crate) fn unhook(area: &Area) -> bool {
    let own = area.own();
    let mine = own.next.compare_exchange(area.control().pointer(), own.pointer(), AcqRel, Relaxed).is_ok();
    if mine {
        own.spin.store(own.pointer(), Release);
    }
    mine
}

/// Supervisor: whether a home's thread may still park although it is not wanted any more. The
/// state, read after the hook, tells what the hook does not tell any more.
pub(crate) fn may_park(area: &Area) -> bool {
    is_hooked(area) && !unhook(area) || area.own().state.load(Acquire) != state::HOME
}

/// Makes `to` own's successor, whether the supervisor has hooked or hooks right now.
fn set_first(area: &Area, from: *mut Context, to: *mut Context) {
    let own = area.own();
    area.control().next.store(to, Release);
    // Hooked, it stays so.
    let _ = own.next.compare_exchange(from, to, AcqRel, Acquire);
}

/// Its yields meet no context any more, whichever side holds the lock.
pub(crate) fn abandon(area: &Area) {
    area.control().next.store(area.own().pointer(), Release);
    area.own().spin.store(area.own().pointer(), Release);
    area.own().next.store(area.own().pointer(), Release);
}

/// Takes a guest out of the ring, or from aside. Its NEXT is itself afterwards; what was its NEXT
/// is returned.
pub(crate) fn take_out(area: &Area, guest: &Context) -> *mut Context {
    let next = guest.next.load(Relaxed);
    let prev = guest.prev.load(Relaxed);
    let own = area.own().pointer();
    let aside = !area.thread.aside.load(Relaxed).is_null() && !count::is_counter(area, guest.pointer());
    // A counter may stand behind those aside; it has no PREV.
    let is_last = next == own || next == area.back().pointer();
    if prev == own {
        if aside {
            area.thread.aside.store(if is_last { null_mut() } else { next }, Relaxed);
        } else {
            set_first(area, guest.pointer(), next);
        }
        count::turn_to(area, guest.pointer(), next);
    } else {
        // SAFETY: contexts of a ring are alive; see `follow`.
        unsafe { &*prev }.next.store(next, Release);
    }
    if aside && is_last {
        area.thread.aside_last.store(prev, Relaxed);
    } else {
        // SAFETY: as above.
        unsafe { &*next }.prev.store(prev, Relaxed);
    }
    // It may be the own context of an area with a ring, where both are that ring's again.
    guest.next.store(guest.pointer(), Relaxed);
    guest.prev.store(guest.pointer(), Relaxed);
    next
}

/// Puts a context at the ring's end. The thread's.
pub(crate) fn append(area: &Area, context: &Context) {
    insert(area, context, area.own().pointer());
}

/// Puts a context in front of one of the ring, or of own. The thread's.
pub(crate) fn insert(area: &Area, context: &Context, before: *mut Context) {
    let own = area.own();
    // SAFETY: as above.
    let next = unsafe { &*before };
    let prev = next.prev.load(Relaxed);
    context.prev.store(prev, Relaxed);
    context.next.store(before, Relaxed);
    if prev == own.pointer() {
        set_first(area, before, context.pointer());
    } else {
        // SAFETY: as above.
        unsafe { &*prev }.next.store(context.pointer(), Release);
    }
    next.prev.store(context.pointer(), Relaxed);
}

/// Whether its yields meet no context, nor will soon: no guest, no counter.
pub(crate) fn is_empty(area: &Area) -> bool {
    let (own, spin) = (area.own().pointer(), area.own().spin.load(Acquire));
    first(area) == own
        && (spin == own || spin == area.control().pointer())
        && area.thread.aside.load(Acquire).is_null()
        && area.inbox.load(Acquire).is_null()
}

/// Whether this context is in the ring. The thread's.
pub(crate) fn holds(area: &Area, context: *mut Context) -> bool {
    let mut at = first(area);
    while at != area.own().pointer() {
        if at == context {
            return true;
        }
        // SAFETY: as above.
        at = unsafe { &*at }.next.load(Relaxed);
    }
    false
}

/// Hands a guest that is out of the ring to the supervisor. It must not be touched afterwards.
pub(crate) fn dismiss(guest: &Context, why: usize) {
    guest.why.store(why as u32, Relaxed);
    guest.state.store(state::LEAVING, Release);
}

/// MXCSR and the x87 control word of the calling thread. MXCSR's six lowest bits only tell what
/// happened.
pub(crate) fn modes() -> u64 {
    let (mut mxcsr, mut control) = (0_u32, 0_u16);
    // SAFETY: both store to the locals named.
    unsafe {
        asm!("stmxcsr [{}]", "fnstcw [{}]", in(reg) &raw mut mxcsr, in(reg) &raw mut control, options(nostack));
    }
    u64::from(mxcsr & !0x3f) | u64::from(control) << 32
}

/// A primary's thread follows the supervisor's hook: takes guests in, sends back those that are
/// wanted at home. Returns the context to go on with.
pub(crate) extern "C" fn control(area: &'static Area) -> *mut Context {
    let own = area.own();
    if area.lock.compare_exchange(lock::FREE, lock::THREAD, AcqRel, Relaxed).is_err() {
        // The supervisor is taking the guests away. It stays hooked, asks again at the next yield,
        // and meets no context before.
        if area.sibling.load(Relaxed) != 0 {
            area.thread.outside.store(1, Release);
        }
        return own.pointer();
    }
    area.thread.outside.store(0, Relaxed);
    area.thread.visits.store(area.thread.visits.load(Relaxed).wrapping_add(1), Release);
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
                guest.link.store(guest.pointer(), Relaxed); // it is in the ring, see `stranded`
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
    // In this order: where the supervisor finds its hook in the one that is written last, it is in
    // both.
    own.spin.store(count::at_turns(area), Release);
    own.next.store(first, Release);
    area.lock.store(lock::FREE, Release);
    if first == own.pointer()
        && area.asked.load(Acquire) == asked::TO_PARK
        && area.asked.compare_exchange(asked::TO_PARK, asked::PARKING, AcqRel, Relaxed).is_ok()
    {
        return crate::switching::park::sibling(area);
    }
    first
}

/// The current guest of a primary's thread leaves; its registers are in its frame. Returns the
/// context to go on with.
pub(crate) extern "C" fn leave(area: &'static Area) -> *mut Context {
    let guest = follow!(area.twin.cur);
    let next = take_out(area, guest);
    guest.home().frame().yield_rip.store(0, Relaxed);
    guest.rip.store(switch::restore_address() as u64, Relaxed);
    dismiss(guest, trip::LEAVE);
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
            guest.next.store(guest.pointer(), Relaxed);
            guest.prev.store(guest.pointer(), Relaxed);
            if !count::is_counter(area, guest.pointer()) {
                each(guest);
            }
        }
    }
    own.prev.store(own.pointer(), Relaxed);
    area.control().next.store(own.pointer(), Release);
    area.turns().next.store(own.pointer(), Relaxed);
    let hooked = is_hooked(area);
    own.spin.store(if hooked { area.control().pointer() } else { own.pointer() }, Release);
    if !hooked {
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
