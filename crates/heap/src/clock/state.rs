//! Whether the clock runs in this process, and with which signal.

use super::layout::Clock;
use crate::layout::Region;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32};

/// Changed only while there is no signal.
struct Cell(UnsafeCell<MaybeUninit<Region>>);

// SAFETY: read only while there is a signal.
unsafe impl Sync for Cell {}

static REGION: Cell = Cell(UnsafeCell::new(MaybeUninit::uninit()));
/// The clock's signal; 0 while it does not run.
pub(super) static SIGNAL: AtomicU32 = AtomicU32::new(0);
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// The process has forbidden itself system calls.
static IS_IN_SANDBOX: AtomicBool = AtomicBool::new(false);

/// # Safety
/// Only while the clock does not run, and before there is a thread that may begin it, too.
pub(super) unsafe fn begin(region: Region, process: u32, signal: u32) {
    // SAFETY: nothing reads it, see above.
    unsafe { (*REGION.0.get()).write(region) };
    PROCESS.store(process, Relaxed);
    SIGNAL.store(signal, Release);
}

pub(super) fn signal() -> Option<u32> {
    Some(SIGNAL.load(Acquire)).filter(|&signal| signal != 0)
}

/// The clock, while it runs, and the process.
pub(super) fn clock() -> Option<(&'static Clock, u32)> {
    signal()?;
    // SAFETY: written before there was a signal.
    let region = unsafe { (*REGION.0.get()).assume_init_ref() };
    Some((region.clock()?, PROCESS.load(Relaxed)))
}

/// In a forked child; returns its parent.
pub(super) fn forked(process: u32) -> u32 {
    PROCESS.swap(process, Relaxed)
}

pub(super) fn enter_sandbox() {
    IS_IN_SANDBOX.store(true, Release);
}

pub(super) fn is_in_sandbox() -> bool {
    IS_IN_SANDBOX.load(Acquire)
}
