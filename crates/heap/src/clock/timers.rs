//! The timers of all threads. The kernel keeps that of a thread that has ended, so each new thread
//! looks at some older ones.

use crate::sys::{self, nr, syscall};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// In the upper half of a timer's value, whose lower one is its thread: other signals lack it.
pub(super) const MARK: u64 = 0x474c_434b;
/// Threads of a process that are sampled at once.
const MOST: usize = 4096;
/// Older timers that a new thread looks at.
const LOOKS: usize = 8;

/// A thread in the upper half, its timer plus one in the lower half; zero if there is none.
static TIMERS: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];
static NEXT: AtomicU32 = AtomicU32::new(0);

/// `struct sigevent`.
#[repr(C)]
struct Event {
    value: u64,
    signal: i32,
    notify: i32,
    thread: u32,
    padding: [u32; 11],
}

/// Sets a timer for a thread of this process; whether it has one now.
pub(super) fn add(process: u32, thread: u32, signal: u32, period_ns: u64) -> bool {
    let start = NEXT.fetch_add(1, Relaxed) as usize;
    for probe in 0..MOST {
        let place = &TIMERS[(start + probe) % MOST];
        let known = place.load(Acquire);
        if known != 0 {
            let owner = (known >> 32) as u32;
            if probe < LOOKS && (owner == thread || !is_there(process, owner)) {
                drop_known(place, known);
            }
        }
        if place.load(Acquire) == 0 {
            let Some(timer) = create(thread, signal, period_ns) else { return false };
            if place.compare_exchange(0, entry(thread, timer), AcqRel, Relaxed).is_ok() {
                return true;
            }
            delete(timer);
        }
    }
    false
}

/// Timers from now on have another signal.
pub(super) fn change(signal: u32, period_ns: u64) {
    for place in &TIMERS {
        let known = place.load(Acquire);
        if known != 0 && drop_known(place, known) {
            let thread = (known >> 32) as u32;
            if let Some(timer) = create(thread, signal, period_ns) {
                if place.compare_exchange(0, entry(thread, timer), AcqRel, Relaxed).is_err() {
                    delete(timer);
                }
            }
        }
    }
}

pub(super) fn remove_all() {
    remove_where(|known| known != 0);
}

/// Removes that of a thread.
pub(super) fn remove(thread: u32) {
    remove_where(|known| known != 0 && (known >> 32) as u32 == thread);
}

fn remove_where(is_to_go: impl Fn(u64) -> bool) {
    for place in &TIMERS {
        let known = place.load(Acquire);
        if is_to_go(known) {
            drop_known(place, known);
        }
    }
}

/// In a forked child, which has none of its parent's timers.
pub(super) fn forget() {
    for place in &TIMERS {
        if place.load(Relaxed) != 0 {
            place.store(0, Relaxed);
        }
    }
}

fn entry(thread: u32, timer: u32) -> u64 {
    u64::from(thread) << 32 | u64::from(timer + 1)
}

/// Whether it was this library that dropped it.
fn drop_known(place: &AtomicU64, known: u64) -> bool {
    let is_ours = place.compare_exchange(known, 0, AcqRel, Relaxed).is_ok();
    if is_ours {
        delete(known as u32 - 1);
    }
    is_ours
}

fn is_there(process: u32, thread: u32) -> bool {
    const NONE: usize = 0;
    // SAFETY: it takes no pointers, and signal zero is not sent.
    unsafe { syscall(nr::TGKILL, [process as usize, thread as usize, NONE, 0, 0, 0]) == 0 }
}

fn create(thread: u32, signal: u32, period_ns: u64) -> Option<u32> {
    const SIGEV_THREAD_ID: i32 = 4;
    // The kernel's name for the CPU time of a thread of this process, as the scheduler counts it.
    let clock = (!(thread as i32) << 3) | 4 | 2;
    let event = Event {
        value: MARK << 32 | u64::from(thread),
        signal: signal as i32,
        notify: SIGEV_THREAD_ID,
        thread,
        padding: [0; 11],
    };
    let mut timer = 0_u32;
    let arguments = [clock as usize, (&raw const event) as usize, (&raw mut timer) as usize, 0, 0, 0];
    // SAFETY: the kernel reads the event and writes the timer.
    if unsafe { syscall(nr::TIMER_CREATE, arguments) } != 0 {
        return None;
    }
    let period = [period_ns / 1_000_000_000, period_ns % 1_000_000_000];
    // At the first tick: a thread that lives for less than a period is sampled as any other.
    let period_and_first = [period, [0, 1]];
    let arguments = [timer as usize, 0, period_and_first.as_ptr() as usize, 0, 0, 0];
    // SAFETY: the kernel reads the times.
    if unsafe { syscall(nr::TIMER_SETTIME, arguments) } != 0 {
        delete(timer);
        return None;
    }
    Some(timer)
}

fn delete(timer: u32) {
    // SAFETY: it takes no pointers.
    unsafe { syscall(nr::TIMER_DELETE, [timer as usize, 0, 0, 0, 0, 0]) };
}

/// Sets a timer for the calling thread.
pub(super) fn add_own(process: u32, signal: u32, period_ns: u64) -> bool {
    add(process, sys::thread(), signal, period_ns)
}
