//! The links of a ring: how a context is put in and taken out, and how a thread is hooked. What a
//! ring is, [`super::ring`] says.

use crate::counting::turns;
use crate::layout::area::Area;
use crate::layout::context::{Context, state};
use core::arch::asm;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

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
    area.own().next.swap(area.control().pointer(), AcqRel);
}

/// Takes the hook of a home off. Supervisor (which does not want the home any more) and the home's
/// thread (which follows the hook) both try; false for the second one.
pub(crate) fn unhook(area: &Area) -> bool {
    let own = area.own();
    own.next.compare_exchange(area.control().pointer(), own.pointer(), AcqRel, Relaxed).is_ok()
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
    area.own().next.store(area.own().pointer(), Release);
}

/// Takes a guest out of the ring, or from aside. Its NEXT is itself afterwards; what was its NEXT
/// is returned.
pub(crate) fn take_out(area: &Area, guest: &Context) -> *mut Context {
    if !area.is_counter(guest.pointer()) {
        turns::parts(area, guest);
    }
    let next = guest.next.load(Relaxed);
    let prev = guest.prev.load(Relaxed);
    let own = area.own().pointer();
    let aside = !area.thread.aside.load(Relaxed).is_null() && !area.is_counter(guest.pointer());
    let is_last = next == own;
    if prev == own {
        if aside {
            area.thread.aside.store(if is_last { null_mut() } else { next }, Relaxed);
        } else {
            set_first(area, guest.pointer(), next);
        }
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
    alone(guest);
    next
}

/// A context is in no ring any more.
pub(crate) fn alone(context: &Context) {
    for link in [&context.next, &context.prev] {
        link.store(context.pointer(), Relaxed);
    }
}

/// Puts a context at the ring's end. The thread's.
pub(crate) fn append(area: &Area, context: &Context) {
    if !area.is_counter(context.pointer()) {
        turns::joins(area, context);
    }
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
    first(area) == area.own().pointer()
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
