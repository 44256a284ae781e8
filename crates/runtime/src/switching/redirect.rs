//! Redirected contexts: a thread that goes on with one goes on with its own context instead.
//!
//! A primary that runs code without yields for long (what it compiles itself, a library) is never
//! at a place where it could let its guests go, and may not be stopped by a system call. The
//! supervisor hooks it, so it meets no context anew. But it may have begun a yield before: it has
//! read which context it goes on with, and is about to write it to CUR and to jump there. No other
//! thread can see that. So:
//!
//! 1. RIP of all contexts in the ring, counters too, is redirected.
//! 2. Every processor that runs a thread of this address space passes a barrier (`membarrier`):
//!    what such a thread stored before is seen, and what it loads afterwards is new.
//! 3. If CUR is the own context then, no other context runs, nor will: a thread on its way to a
//!    guest comes back from there with nothing done. So the guests may be taken out.
//!
//! They stay redirected until the thread cannot be on that way any more, since it came to the
//! control context, was seen asleep, or is gone. Meanwhile they are at home, where RIP is not used:
//! there they go on at [`Context::straight`] (`switch`, where it parks), and do not park again.
//!
//! Only the supervisor redirects and straightens, and the primary's threads are of its instance of
//! the runtime. A guest that runs meanwhile, since CUR was not the own context, stores its RIP at
//! its next yield, and a signal that interrupts it in the midst of that finds what it had stored
//! ([`goes_on`]).

use crate::layout::context::Context;
use crate::switching::labels;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Release};

/// Where a context really goes on.
pub(crate) fn goes_on(context: &Context) -> u64 {
    let rip = context.rip.load(Acquire);
    // By what was noted: at home, another instance of the runtime may ask.
    if rip == context.back.load(Acquire) { context.straight.load(Acquire) } else { rip }
}

/// Redirects it. False if it was captured whole: it puts RIP in order by itself as it goes on, so
/// it cannot be kept redirected.
pub(crate) fn redirect(context: &Context) -> bool {
    let back = labels::back_address() as u64;
    context.back.store(back, Release);
    loop {
        let rip = context.rip.load(Acquire);
        if rip == back {
            return true;
        }
        if rip == labels::restore_address() as u64 {
            return false;
        }
        context.straight.store(rip, Release);
        if context.rip.compare_exchange(rip, back, AcqRel, Acquire).is_ok() {
            return true;
        }
    }
}

pub(crate) fn is_redirected(context: &Context) -> bool {
    context.rip.load(Acquire) == labels::back_address() as u64
}

/// Makes it lead on again, unless it does.
pub(crate) fn straighten(context: &Context) {
    let back = labels::back_address() as u64;
    // It may run, and have stored a new one.
    let _ = context.rip.compare_exchange(back, context.straight.load(Acquire), AcqRel, Acquire);
}
