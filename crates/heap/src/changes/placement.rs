//! CPUs that threads may use, and nodes that memory is spread over. Both are the kernel's settings
//! of the first thread, which all later threads and programs inherit.

use super::layout::{CPUS, Page, asked, count, done};
use crate::sys::{nr, syscall};
use core::sync::atomic::Ordering::Relaxed;

/// Places this process, as far as that is asked for.
pub(super) fn begin(page: &Page) {
    const INTERLEAVE: usize = 3;
    let mut is_placed = false;
    if page[asked::HAS_CPUS].load(Relaxed) != 0 {
        let mask: [u64; CPUS / 64] = core::array::from_fn(|word| page[asked::CPUS + word].load(Relaxed));
        // SAFETY: the kernel reads the mask.
        let done = unsafe {
            syscall(nr::SCHED_SETAFFINITY, [0, size_of_val(&mask), mask.as_ptr() as usize, 0, 0, 0])
        };
        is_placed |= done == 0;
    }
    let nodes = page[asked::NODES].load(Relaxed);
    if nodes != 0 {
        // One more bit than there are is what the kernel takes as their number.
        let bits = u64::BITS as usize + 1;
        let mask = [nodes, 0];
        // SAFETY: as above.
        let done = unsafe { syscall(nr::SET_MEMPOLICY, [INTERLEAVE, mask.as_ptr() as usize, bits, 0, 0, 0]) };
        is_placed |= done == 0;
    }
    if is_placed {
        count(page, done::PLACED);
    }
}
