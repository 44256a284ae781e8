//! Threads that may be cancelled at any moment, and not only where they wait: libc's signal for that is handled on
//! whatever stack the thread has, and unwinds it. So they are nobody's guests as long as that lasts, and siblings have none. A primary's
//! thread has guests until somebody cancels it (servers say for their threads that they may be cancelled anywhere, so that what is left
//! of a crash can be told in peace): whoever does so waits until they are gone. Nothing else of cancellation needs us: it happens
//! inside system calls, where a thread is its own.

use super::next::Next;
use super::threads::mine;
use crate::area::{Area, asked, closed, kind, lock, settled};
use crate::{count, ring, sys};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use core::sync::atomic::fence;

const EINVAL: i32 = 22;
const ENOSYS: i32 = 38;
const DEFERRED: i32 = 0;
const ASYNCHRONOUS: i32 = 1;
/// How long guests are waited for to be gone: so many naps.
const LOOKS: u32 = 2000;
const NAP: u64 = 50_000;
/// Who comes to no yield in so many more of them is not at one.
const LONG: u32 = 10 * LOOKS;

/// Goes on to libc's by a jump: that may unwind its caller at once, and knows nothing of a frame of ours.
#[cfg(freestanding)]
#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn pthread_setcanceltype(wanted: i32, before: *mut i32) -> i32 {
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {prepare}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2: mov eax, {EINVAL}",
        "ret",
        prepare = sym prepare, EINVAL = const EINVAL,
    )
}

/// Likewise: who cancels itself is unwound at once.
#[cfg(freestanding)]
#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn pthread_cancel(thread: usize) -> i32 {
    core::arch::naked_asm!(
        "push rdi",
        "call {prepare}",
        "pop rdi",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2: mov eax, {ENOSYS}",
        "ret",
        prepare = sym cancels, ENOSYS = const ENOSYS,
    )
}

/// Somebody is about to be cancelled. Returns libc's function.
extern "C" fn cancels(thread: u64) -> usize {
    static NEXT: Next = Next::new(c"pthread_cancel");
    if let Some(mine) = mine().filter(|mine| mine.kind.load(Relaxed) == kind::PRIMARY) {
        let region = mine.region();
        let areas =
            || (0..region.slots()).filter(|slot| region.tid(*slot) != 0).map(|slot| region.area(slot));
        // It may be about to begin: then it is not known yet whose area is its.
        let me = mine.pid.load(Relaxed);
        let begins = |area: &Area| area.kind.load(Acquire) == kind::CLAIMED && area.pid.load(Relaxed) == me;
        for _ in 0..LOOKS / 20 {
            if !areas().any(begins) {
                break;
            }
            sys::sleep_ns(NAP);
        }
        // Every libc calls a thread by where its storage is. Threads that ended a moment ago may have had the same.
        let wanted = |area: &&Area| {
            area.kind.load(Acquire) == kind::PRIMARY
                && area.own().fs.load(Relaxed) == thread
                && area.sibling.load(Relaxed) == 0
                && !core::ptr::eq(*area, mine)
        };
        for area in areas().filter(wanted) {
            area.closed.fetch_or(closed::CANCELLED, SeqCst);
            fence(SeqCst);
            // Either this is seen here, or the other there.
            if area.settled.load(SeqCst) & settled::CANCELLABLE != 0 {
                wait_for_guests(area, LONG);
            }
        }
    }
    NEXT.address()
}

/// Returns libc's function. No code with sites runs until that has done what is asked for, so the order does not matter.
extern "C" fn prepare(wanted: i32) -> usize {
    static NEXT: Next = Next::new(c"pthread_setcanceltype");
    if let Some(area) = mine() {
        let primary = area.kind.load(Relaxed) == kind::PRIMARY;
        match wanted {
            ASYNCHRONOUS => {
                // A sibling is both.
                area.settled.fetch_or(settled::CANCELLABLE, SeqCst);
                fence(SeqCst);
                let cancelled = area.closed.load(SeqCst) & closed::CANCELLED != 0;
                if primary && (cancelled || area.sibling.load(Relaxed) != 0) {
                    alone(area);
                }
            }
            DEFERRED => {
                area.settled.fetch_and(!settled::CANCELLABLE, AcqRel);
                if primary {
                    area.closed.fetch_and(!closed::CANCELLABLE, AcqRel);
                }
            }
            _ => {}
        }
    }
    NEXT.address()
}

/// The calling thread's guests go home, and then it comes to the runtime no more, where it would be unwound just as badly.
fn alone(area: &'static Area) {
    if area.closed.load(Acquire) & closed::CANCELLABLE != 0 {
        return;
    }
    super::forks::close(area, closed::CANCELLABLE);
    wait_for_guests(area, LOOKS);
}

/// Until a thread that takes no more guests has none, and comes to the runtime no more.
fn wait_for_guests(area: &'static Area, looks: u32) {
    if sys::getpid() != area.region().primary.load(Relaxed) {
        return; // a forked child, without butler
    }
    // The butler hooks as long as it believes that there are guests, or has asked a sibling for something; and it may be about to.
    let page = area.region().page();
    let sibling = area.sibling.load(Relaxed) != 0;
    let about = page.rounds.load(Acquire) + 2;
    for look in 0..looks {
        let asked = area.asked_at.load(Acquire) != 0 || area.asked.load(Acquire) != asked::NOTHING;
        let decided = page.rounds.load(Acquire) >= about;
        // A counter in its ring is no code that could be unwound, either; who sleeps comes to none.
        let counts = !sibling && look < LOOKS / 20 && count::is_counting(area);
        let alone = area.guests.load(Acquire) == 0 && !counts;
        if alone && decided && !(sibling && asked) {
            break;
        }
        sys::sleep_ns(NAP);
    }
    ring::unhook(area);
    // It may be on its way out of the runtime, and wait for a processor.
    let free = || {
        let cur = area.cur.load(Acquire);
        (cur == area.own().pointer() || cur == area.quiet().pointer())
            && area.lock.load(Acquire) == lock::FREE
    };
    for _ in 0..looks {
        if free() {
            break;
        }
        sys::sleep_ns(NAP);
    }
}
