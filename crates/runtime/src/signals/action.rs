//! What the program asked for, signal by signal. A static, and rightly so: each process has its own
//! instance of the runtime, and a child that is forked a copy.

use crate::sys::{self, SigAction};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

pub(crate) const DEFAULT: usize = 0;
pub(crate) const IGNORE: usize = 1;

pub(crate) const SA_NOCLDSTOP: u64 = 1;
pub(crate) const SA_NOCLDWAIT: u64 = 2;
pub(crate) const SA_SIGINFO: u64 = 4;
pub(crate) const SA_RESTORER: u64 = 0x04000000;
pub(crate) const SA_ONSTACK: u64 = 0x08000000;
pub(crate) const SA_RESTART: u64 = 0x10000000;
pub(crate) const SA_NODEFER: u64 = 0x40000000;
pub(crate) const SA_RESETHAND: u64 = 0x80000000;

const SIGILL: i32 = 4;
pub(crate) const SIGTRAP: i32 = 5;
const SIGBUS: i32 = 7;
const SIGFPE: i32 = 8;
const SIGSEGV: i32 = 11;

/// Signals by which a fault shows. A guest may raise one at any time, so ours is always there, and
/// they are never blocked.
pub(crate) const FAULTS: [i32; 5] = [SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV];

pub(crate) const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

pub(crate) const FAULT_MASK: u64 = bit(SIGILL) | bit(SIGTRAP) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGSEGV);

struct ActionEntry {
    /// Odd during a write; writers have all signals blocked, so no reader interrupts one in its own
    /// thread.
    version: AtomicU32,
    /// The kernel's handler is ours.
    wrapped: AtomicU32,
    handler: AtomicUsize,
    flags: AtomicU64,
    mask: AtomicU64,
}

static ENTRIES: [ActionEntry; 65] = [const {
    ActionEntry {
        version: AtomicU32::new(0),
        wrapped: AtomicU32::new(0),
        handler: AtomicUsize::new(DEFAULT),
        flags: AtomicU64::new(0),
        mask: AtomicU64::new(0),
    }
}; 65];

/// Signals for which the kernel has our handler.
static WRAPPED: AtomicU64 = AtomicU64::new(0);

/// The same, by address, for code of the primary's instance that runs in scavengers.
pub(crate) fn wrapped() -> &'static AtomicU64 {
    &WRAPPED
}

/// Signals at which system calls end, as `siginterrupt` was told: `signal` sets its handlers so.
static INTERRUPTING: AtomicU64 = AtomicU64::new(0);

pub(crate) fn is_to_interrupt(signal: i32) -> bool {
    INTERRUPTING.load(Relaxed) & bit(signal) != 0
}

pub(crate) fn set_to_interrupt(signal: i32, interrupt: bool) {
    if interrupt {
        INTERRUPTING.fetch_or(bit(signal), Relaxed);
    } else {
        INTERRUPTING.fetch_and(!bit(signal), Relaxed);
    }
}

/// What the program asked for last.
pub(crate) fn get(signal: i32) -> SigAction {
    let entry = &ENTRIES[signal as usize];
    loop {
        let before = entry.version.load(Acquire);
        let action = SigAction {
            handler: entry.handler.load(Acquire),
            flags: entry.flags.load(Acquire),
            restorer: 0,
            mask: entry.mask.load(Acquire),
        };
        if before % 2 == 0 && entry.version.load(Acquire) == before {
            return action;
        }
        core::hint::spin_loop();
    }
}

/// Whether ours stands for it in the kernel.
pub(crate) fn is_wrapped(signal: i32) -> bool {
    ENTRIES[signal as usize].wrapped.load(Acquire) != 0
}

/// Notes what the program asks for. `wrapped`: ours is (about to be) the kernel's.
pub(crate) fn set(signal: i32, action: &SigAction, wrapped: bool) {
    let entry = &ENTRIES[signal as usize];
    let mask = sys::set_signal_mask(u64::MAX);
    while entry.version.fetch_or(1, Acquire) % 2 == 1 {
        core::hint::spin_loop();
    }
    entry.handler.store(action.handler, Relaxed);
    entry.flags.store(action.flags, Relaxed);
    entry.mask.store(action.mask, Relaxed);
    entry.wrapped.store(u32::from(wrapped), Relaxed);
    if wrapped {
        WRAPPED.fetch_or(bit(signal), Relaxed);
    } else {
        WRAPPED.fetch_and(!bit(signal), Relaxed);
    }
    entry.version.fetch_add(1, Release);
    sys::set_signal_mask(mask);
}
