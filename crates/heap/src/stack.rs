//! Registers and stack of an allocation whose calls the profiler does not know yet. It unwinds them
//! outside: here they are only copied.
//!
//! How far a stack goes is known of the main thread's. Any other one may end anywhere: each further
//! page is asked for with a system call that does nothing (`sys::may_read`). A program that forbids
//! itself all system calls but reading and writing is not recorded any more (`interpose.rs`).

use crate::layout::{Region, STACK_BYTES, STACKS, state};
use crate::sys;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

/// What an interposed function finds when it is called. `interpose.rs` pushes it in this order.
#[repr(C)]
pub(crate) struct Caller {
    pub(crate) rbx: u64,
    pub(crate) rbp: u64,
    pub(crate) r12: u64,
    pub(crate) r13: u64,
    pub(crate) r14: u64,
    pub(crate) r15: u64,
    pub(crate) result: u64,
    pub(crate) return_address: u64,
}

impl Caller {
    /// The stack pointer as it is when the interposed function has returned.
    pub(crate) fn stack_pointer(&self) -> u64 {
        core::ptr::from_ref(self) as u64 + size_of::<Self>() as u64
    }
}

/// The main thread's stack is mapped up to here; 0 if that is not known.
pub(crate) static MAIN_STACK_END: AtomicU64 = AtomicU64::new(0);
/// Below the main stack the kernel leaves at least 128 MiB free.
const MAIN_STACK_BYTES: u64 = 120 << 20;
const PAGE: u64 = 4096;
/// Buffers that are tried: if these are all in use, others are likely to be.
const PROBES: u32 = 4;

/// How many bytes from `at` on may be read, up to as many as a buffer holds.
pub(crate) fn readable(at: u64) -> u64 {
    let most = STACK_BYTES as u64;
    let end = MAIN_STACK_END.load(Relaxed);
    if at < end && end - at < MAIN_STACK_BYTES {
        return most.min(end - at);
    }
    let mut known = PAGE - at % PAGE;
    while known < most && sys::may_read(at + known) {
        known += PAGE;
    }
    known.min(most)
}

/// The end of what may be read at `at`, a place on the stack or the end of what is known of it;
/// none if nothing may.
pub(crate) fn readable_page(at: u64) -> Option<u64> {
    let end = MAIN_STACK_END.load(Relaxed);
    if at < end && end - at < MAIN_STACK_BYTES {
        return Some(end);
    }
    let into = at % PAGE;
    (into != 0 || sys::may_read(at)).then(|| at - into + PAGE)
}

/// Copies the stack into a free buffer; whether there was one.
pub(crate) fn copy(region: &Region, process: u32, key: u64, caller: &Caller) -> bool {
    let from = region.header().shared.next_stack.fetch_add(1, Relaxed);
    let claims = |number: &u32| {
        let buffer = region.stack(*number);
        buffer.state.compare_exchange(state::FREE, state::WRITTEN, AcqRel, Relaxed).is_ok()
    };
    let Some(number) = (0..PROBES.min(STACKS)).map(|probe| from.wrapping_add(probe)).find(claims) else {
        return false;
    };
    let buffer = region.stack(number);
    let sp = caller.stack_pointer();
    buffer.process.store(process, Relaxed);
    buffer.key.store(key, Relaxed);
    buffer.ip.store(caller.return_address, Relaxed);
    buffer.sp.store(sp, Relaxed);
    let kept = [caller.rbx, caller.rbp, caller.r12, caller.r13, caller.r14, caller.r15];
    for (to, value) in buffer.kept.iter().zip(kept) {
        to.store(value, Relaxed);
    }
    let words = readable(sp) / 8;
    for (index, word) in buffer.words.iter().take(words as usize).enumerate() {
        // SAFETY: readable, see above; stacks are aligned to words. Callees of ours lie below.
        word.store(unsafe { (sp as *const u64).add(index).read_volatile() }, Relaxed);
    }
    buffer.length.store(8 * words, Relaxed);
    buffer.state.store(state::READY, Release);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::tests::region;
    use core::sync::atomic::Ordering::Acquire;

    fn caller() -> Caller {
        Caller { rbx: 1, rbp: 2, r12: 3, r13: 4, r14: 5, r15: 6, result: 0, return_address: 7 }
    }

    #[test]
    fn a_stack_is_copied_once_there_is_a_buffer() {
        let region = region(2);
        let caller = caller();
        assert!(copy(&region, 5, 99, &caller));
        let buffer = region.stack(0);
        assert_eq!((buffer.state.load(Acquire), buffer.key.load(Relaxed)), (state::READY, 99));
        assert!(buffer.length.load(Relaxed) >= 64 && buffer.kept[5].load(Relaxed) == 6);
        let copied = (0..2 * STACKS).filter(|_| copy(&region, 5, 99, &caller)).count();
        assert_eq!(copied as u32, STACKS - 1, "no buffer is written twice");
    }

    #[test]
    fn pages_that_are_not_there_are_not_read() {
        let word = 0_u64;
        assert!(sys::may_read(&raw const word as u64));
        assert!(!sys::may_read(0) && !sys::may_read(1 << 46));
    }
}
