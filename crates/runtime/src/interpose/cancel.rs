//! Threads that may be cancelled at any moment, and not only where they wait: libc's signal for that is handled on
//! whatever stack the thread has, and unwinds it. So they have no guests and are none, as long as that lasts. Nothing else of
//! cancellation needs us: it happens inside system calls, where a thread is its own.

use super::next::Next;
use super::threads::mine;
use crate::area::{Area, asked, closed, kind, settled};
use crate::{ring, sys};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

const EINVAL: i32 = 22;
const DEFERRED: i32 = 0;
const ASYNCHRONOUS: i32 = 1;

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

/// Returns libc's function. No code with sites runs until that has done what is asked for, so the order does not matter.
extern "C" fn prepare(wanted: i32) -> usize {
    static NEXT: Next = Next::new(c"pthread_setcanceltype");
    if let Some(area) = mine() {
        let primary = area.kind.load(Relaxed) == kind::PRIMARY;
        match wanted {
            ASYNCHRONOUS => {
                // A sibling is both.
                area.settled.fetch_or(settled::CANCELLABLE, AcqRel);
                if primary {
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
    const LOOKS: u32 = 2000;
    const NAP: u64 = 50_000;
    if area.closed.load(Acquire) & closed::CANCELLABLE != 0 {
        return;
    }
    super::forks::close(area, closed::CANCELLABLE);
    if sys::getpid() != area.region().primary.load(Relaxed) {
        return; // a forked child, without butler
    }
    // The butler hooks as long as it believes that there are guests, or has asked a sibling for something; and it may be about to.
    let page = area.region().page();
    let sibling = area.sibling.load(Relaxed) != 0;
    let about = page.rounds.load(Acquire) + u64::from(sibling) * 2;
    for _ in 0..LOOKS {
        let asked = area.asked_at.load(Acquire) != 0 || area.asked.load(Acquire) != asked::NOTHING;
        let decided = page.rounds.load(Acquire) >= about;
        if area.guests.load(Acquire) == 0 && decided && !(sibling && asked) {
            break;
        }
        sys::sleep_ns(NAP);
    }
    ring::unhook(area);
}
