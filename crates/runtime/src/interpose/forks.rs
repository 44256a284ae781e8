//! A primary forks: its guests stay behind, and the child goes on alone. So does one that shares
//! its memory (`vfork`).

use crate::interpose::mine::{RegisterPair, mine};
use crate::interpose::next::{call_next, fail};
use crate::layout::area::{Area, closed, kind, lock, settled};
use crate::switching::ring;
use crate::sys;
use core::ffi::c_void;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use runtime_abi::control::{FORKED, trip};

const ENOSYS: i32 = 38;
const EAGAIN: i32 = 11;

/// The calling thread's guests go home, and no others come, for a reason of [`closed`].
pub(super) fn close(area: &'static Area, why: u32) {
    const POLLS: u32 = 20_000;
    const POLL_NS: u64 = 50_000;
    area.closed.fetch_or(why, AcqRel);
    // The supervisor holds it for moments only, but may have to wait for a processor.
    for look in 0..POLLS {
        if area.lock.compare_exchange(lock::FREE, lock::THREAD, AcqRel, Relaxed).is_ok() {
            ring::take_all(area, |guest| ring::dismiss(guest, trip::ENDED));
            area.lock.store(lock::FREE, Release);
            return;
        }
        if look < POLLS / 20 {
            sys::sched_yield();
        } else {
            sys::sleep_ns(POLL_NS);
        }
    }
    // It was killed with the lock in its hands. No context is met any more.
    ring::abandon(area);
}

pub(super) fn forked(next: impl FnOnce() -> i32) -> i32 {
    let Some(area) = mine() else { return next() };
    let primary = area.kind.load(Relaxed) == kind::PRIMARY;
    let was_closed = area.closed.load(Acquire);
    if primary {
        close(area, closed::FORKS);
    }
    let child = next();
    if child == 0 {
        area.pid.store(sys::getpid(), Relaxed);
        area.region().forked(area, sys::gettid());
        area.thread.lent.store(0, Relaxed);
        if primary {
            tell(area);
        } else {
            area.settled.fetch_or(settled::FOR_GOOD, Relaxed);
        }
    } else if primary && was_closed & closed::FORKS == 0 {
        area.closed.fetch_and(!closed::FORKS, AcqRel);
    }
    child
}

/// The launcher sees to its yields, if it lives on.
fn tell(child: &Area) {
    let page = child.region().page();
    let fork = page.forks.fetch_add(1, Relaxed) as usize;
    page.forked[fork % FORKED].store(child.pid.load(Relaxed), Relaxed);
}

#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn fork() -> i32 {
    forked(|| call_next!(c"fork" as fn() -> i32, (), else fail(ENOSYS)))
}

/// Its parent ends inside libc.
#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn daemon(stay: i32, keep_streams: i32) -> i32 {
    forked(|| call_next!(c"daemon" as fn(i32, i32) -> i32, (stay, keep_streams), else fail(ENOSYS)))
}

/// # Safety
/// As libc's: the pointers are the program's.
#[cfg_attr(freestanding, unsafe(no_mangle))]
unsafe extern "C" fn forkpty(
    terminal: *mut i32,
    name: *mut u8,
    settings: *const c_void,
    size: *const c_void,
) -> i32 {
    forked(|| {
        call_next!(c"forkpty" as fn(*mut i32, *mut u8, *const c_void, *const c_void) -> i32,
            (terminal, name, settings, size), else fail(ENOSYS))
    })
}

/// `vfork` returns twice on one stack, so it is done here, as every libc does it: while the child
/// runs, the return address is kept in a register. The child has its parent's area; it must meet no
/// context there.
#[cfg(freestanding)]
#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn vfork() -> i32 {
    core::arch::naked_asm!(
        "sub rsp, 8",
        "call {before}",
        "add rsp, 8",
        "mov rsi, rdx", // with rax what has to be undone; kept in registers like the return address
        "mov rdx, rax",
        "pop rdi",
        "mov eax, 58",
        "syscall",
        "push rdi",
        "test rax, rax",
        "jz 2f",
        "push rax",
        "mov rdi, rdx",
        "call {after}",
        "pop rdi",
        "mov rax, rdi",
        "cmp rdi, -4096",
        "ja 3f",
        "2: ret",
        "3: jmp {failed}",
        before = sym before_vfork, after = sym after_vfork, failed = sym vfork_failed,
    )
}

/// Closes the area of a primary's thread, and marks that another process runs on it now. Returns it
/// and what it was before.
extern "C" fn before_vfork() -> RegisterPair {
    let Some(area) = mine() else { return RegisterPair { start: 0, argument: 0 } };
    let was_closed = area.closed.load(Acquire);
    if area.kind.load(Relaxed) == kind::PRIMARY {
        close(area, closed::FORKS);
    }
    let was_lent = area.thread.lent.swap(1, Relaxed);
    RegisterPair { start: area.address() as u64, argument: u64::from(was_closed << 1 | was_lent) }
}

extern "C" fn after_vfork(area: Option<&'static Area>, before: u32) {
    if let Some(area) = area {
        area.thread.lent.store(before & 1, Relaxed);
        if before >> 1 & closed::FORKS == 0 {
            area.closed.fetch_and(!closed::FORKS, AcqRel);
        }
    }
}

extern "C" fn vfork_failed(result: isize) -> i32 {
    fail(i32::try_from(-result).unwrap_or(EAGAIN))
}

#[expect(non_snake_case, reason = "its name in libc")]
#[cfg_attr(freestanding, unsafe(no_mangle))]
extern "C" fn _Fork() -> i32 {
    forked(|| call_next!(c"_Fork" as fn() -> i32, (), else fail(ENOSYS)))
}
