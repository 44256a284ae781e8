//! Whether allocations are recorded in this process, and where.

use crate::layout::Region;
use crate::sys;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32};

/// The threshold while nothing is recorded.
static NONE: AtomicU32 = AtomicU32::new(0);
/// Where the threshold is.
pub(crate) static THRESHOLD: AtomicPtr<AtomicU32> = AtomicPtr::new((&raw const NONE).cast_mut());

/// Written once, in the constructor.
struct Once(UnsafeCell<MaybeUninit<Region>>);

// SAFETY: read only once `IS_MAPPED` is set, and not written after that.
unsafe impl Sync for Once {}

static REGION: Once = Once(UnsafeCell::new(MaybeUninit::uninit()));
static IS_MAPPED: AtomicBool = AtomicBool::new(false);
/// This process's number, on a page that a forked child finds zeroed.
static PROCESS: AtomicPtr<AtomicU32> = AtomicPtr::new(core::ptr::null_mut());

pub(crate) fn region() -> Option<&'static Region> {
    // SAFETY: written before it was mapped.
    IS_MAPPED.load(Acquire).then(|| unsafe { (*REGION.0.get()).assume_init_ref() })
}

/// The number of the calling process.
pub(crate) fn process() -> u32 {
    let page = PROCESS.load(Relaxed);
    if page.is_null() {
        return sys::process();
    }
    // SAFETY: a page that stays mapped.
    let number = unsafe { &*page };
    match number.load(Relaxed) {
        0 => {
            let process = sys::process();
            number.store(process, Relaxed);
            process
        }
        known => known,
    }
}

/// From now on nothing is recorded in this process.
pub(crate) extern "C" fn end() {
    THRESHOLD.store((&raw const NONE).cast_mut(), Release);
    IS_MAPPED.store(false, Release);
}

/// From now on allocations are recorded. `page` is cleared by the kernel in forked children, or
/// null.
///
/// # Safety
/// Only once, and before there is a second thread.
pub(crate) unsafe fn begin(region: Region, page: *mut AtomicU32) {
    // SAFETY: nothing reads it yet.
    let region = unsafe { (*REGION.0.get()).write(region) };
    PROCESS.store(page, Relaxed);
    IS_MAPPED.store(true, Release);
    THRESHOLD.store((&raw const region.header().read_mostly.threshold).cast_mut(), Release);
}
