//! A primary forks: its guests stay behind, and the child goes on alone.

use super::next::{call_next, fail};
use super::threads::mine;
use crate::area::{Area, kind, lock};
use crate::{ring, sys};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use runtime_abi::control::trip;

const ENOSYS: i32 = 38;

/// The calling thread's guests go home, and no others come.
pub(super) fn close(area: &'static Area) {
    area.closed.store(1, Release);
    // The butler holds it for moments only; and if it is killed, nobody comes aboard any more.
    for _ in 0..1000 {
        if area.lock.compare_exchange(lock::FREE, lock::THREAD, AcqRel, Relaxed).is_ok() {
            ring::take_all(area, |guest| ring::dismiss(guest, trip::ENDED));
            area.lock.store(lock::FREE, Release);
            return;
        }
        sys::sched_yield();
    }
}

fn forked(next: impl FnOnce() -> i32) -> i32 {
    let Some(area) = mine() else { return next() };
    let primary = area.kind.load(Relaxed) == kind::PRIMARY;
    let was_closed = area.closed.load(Acquire);
    if primary {
        close(area);
    }
    let child = next();
    if child == 0 {
        area.pid.store(sys::getpid(), Relaxed);
        area.tid.store(sys::gettid(), Relaxed);
        if !primary {
            area.settled.store(1, Relaxed);
        }
    } else if primary && was_closed == 0 {
        area.closed.store(0, Release);
    }
    child
}

#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn fork() -> i32 {
    forked(|| call_next!(c"fork" as fn() -> i32, (), else fail(ENOSYS)))
}

#[expect(non_snake_case, reason = "its name in libc")]
#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn _Fork() -> i32 {
    forked(|| call_next!(c"_Fork" as fn() -> i32, (), else fail(ENOSYS)))
}
