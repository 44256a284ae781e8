//! The words of an area that belong to signals. The thread's; only this room writes them.

use super::frame::{SS_DISABLE, SignalInfo, SignalStack};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};

#[repr(C)]
pub(crate) struct SignalWords {
    /// The signal stack that the program asked for: pointer, flags, size.
    asked_stack: [AtomicU64; 3],
    /// Faults that the program has blocked; in the kernel they are not.
    blocked_faults: AtomicU64,
    /// While a handler of the program's runs: what it interrupted has no guest in its hands, so its
    /// guests may be taken away.
    pub(super) free_hands: AtomicU32,
    /// The runtime lets a signal in although it is at work: the program is at its yield.
    pub(super) at_yield: AtomicU32,
    /// A signal that was put off, and the mask under which it came.
    put_off_mask: AtomicU64,
    put_off_info: [AtomicU32; 32],
}

impl SignalWords {
    /// As of an area that is made.
    pub(crate) fn reset(&self) {
        self.free_hands.store(0, Relaxed);
        self.at_yield.store(0, Relaxed);
        self.blocked_faults.store(0, Relaxed);
        self.ask_stack(&SignalStack::NONE);
    }

    /// The program blocks these faults. Called for the thread.
    pub(crate) fn block_faults(&self, mask: u64) {
        self.blocked_faults.store(mask, Relaxed);
    }

    pub(crate) fn blocked_faults(&self) -> u64 {
        self.blocked_faults.load(Relaxed)
    }

    /// Whether the guests of the code that a handler interrupted may be taken away.
    pub(crate) fn has_free_hands(&self) -> bool {
        self.free_hands.load(core::sync::atomic::Ordering::Acquire) != 0
    }

    /// The signal stack that the program asked for.
    pub(crate) fn program_stack(&self) -> SignalStack {
        let [pointer, flags, size] = [0, 1, 2].map(|i| self.asked_stack[i].load(Relaxed));
        if size == 0 {
            SignalStack::NONE
        } else {
            SignalStack { pointer, flags: flags as i32, padding: 0, size }
        }
    }

    pub(crate) fn ask_stack(&self, stack: &SignalStack) {
        let gone = stack.flags & SS_DISABLE != 0;
        let words = [stack.pointer, stack.flags as u64, if gone { 0 } else { stack.size }];
        for (to, from) in self.asked_stack.iter().zip(words) {
            to.store(from, Relaxed);
        }
    }

    /// Keeps a signal; the caller sets `deferred`.
    pub(super) fn keep(&self, info: &SignalInfo, mask: u64) {
        let words = [info.signal as u32, info.errno as u32, info.code as u32];
        for (to, from) in self.put_off_info.iter().zip(words.into_iter().chain(info.rest)) {
            to.store(from, Relaxed);
        }
        self.put_off_mask.store(mask, Relaxed);
    }

    pub(crate) fn what_was_put_off(&self) -> (SignalInfo, u64) {
        let word = |i: usize| self.put_off_info[i].load(Relaxed);
        let info = SignalInfo {
            signal: word(0) as i32,
            errno: word(1) as i32,
            code: word(2) as i32,
            rest: core::array::from_fn(|i| word(3 + i)),
        };
        (info, self.put_off_mask.load(Relaxed))
    }
}
