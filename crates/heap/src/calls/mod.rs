//! The calls that led to an allocation, as return addresses: what tells one path of calls from all
//! others.
//!
//! It is found inside the program, at each allocation that is recorded, by the tables by which
//! exceptions are thrown, too. The whole path is unwound outside, once (`stack.rs`); here some
//! frames do, and where the tables do not tell how to go on, the path ends.
//!
//! ```text
//! objects   the loaded file that an address lies in, and its tables: glibc's `_dl_find_object`
//! tables    the entry of an address in `.eh_frame`
//! rows      an entry's instructions: where a frame's caller is found
//! step      that, in one word
//! known     the steps that are known
//! ```

mod known;
mod objects;
mod rows;
mod step;
mod tables;

use crate::layout::STACK_BYTES;
use crate::stack::{self, Caller};
use known::KNOWN;
use step::{Base, Saved};

/// Frames that are followed. Without optimization a container's call of `malloc` lies eight calls
/// below the line that people look for.
pub(crate) const MOST_FRAMES: usize = 16;

/// The return addresses of an allocation, the innermost first.
pub(crate) struct Path {
    addresses: [u64; MOST_FRAMES],
    length: usize,
}

impl Path {
    /// The calls that led to one of ours.
    pub(crate) fn of(caller: &Caller) -> Self {
        let mut path = Self { addresses: [0; MOST_FRAMES], length: 0 };
        let bottom = caller.stack_pointer();
        let mut stack = Readable { end: bottom, top: bottom + STACK_BYTES as u64 };
        let mut frame = Frame { address: caller.return_address, sp: bottom, bp: Some(caller.rbp) };
        for place in &mut path.addresses {
            *place = frame.address;
            path.length += 1;
            let Some(caller) = frame.caller(&mut stack) else { break };
            frame = caller;
        }
        path
    }

    /// The innermost ones, as many as `most`.
    pub(crate) fn addresses(&self, most: usize) -> &[u64] {
        self.addresses.get(..self.length.min(most)).unwrap_or_default()
    }
}

struct Frame {
    /// Where it goes on.
    address: u64,
    sp: u64,
    bp: Option<u64>,
}

impl Frame {
    fn caller(&self, stack: &mut Readable) -> Option<Self> {
        // The call itself: what follows it may be another function.
        let step = KNOWN.step(self.address.checked_sub(1)?)?;
        let base = match step.base {
            Base::Sp => self.sp,
            Base::Bp => self.bp?,
        };
        let cfa = base.checked_add_signed(step.offset)?;
        if cfa % 8 != 0 || cfa < self.sp.checked_add(8)? {
            return None;
        }
        let bp = match step.bp {
            Saved::Same => self.bp,
            Saved::At(offset) => {
                let at = cfa.checked_add_signed(offset)?;
                (at >= self.sp && at < cfa && at % 8 == 0).then(|| stack.word(at))?
            }
            Saved::Lost => None,
        };
        let address = stack.word(cfa - 8)?;
        (address != 0).then_some(Self { address, sp: cfa, bp })
    }
}

/// How far the stack may be read.
struct Readable {
    end: u64,
    top: u64,
}

impl Readable {
    fn word(&mut self, at: u64) -> Option<u64> {
        while at >= self.end {
            if self.end >= self.top {
                return None;
            }
            self.end = stack::readable_page(self.end)?;
        }
        // SAFETY: a word on this thread's stack, above all that is in use by this library, that may
        // be read.
        Some(unsafe { (at as *const u64).read_volatile() })
    }
}

#[cfg(test)]
mod tests {
    use super::step::Step;
    use super::*;

    fn caller_at(words: &[u64]) -> &Caller {
        // SAFETY: eight words, as a caller is.
        unsafe { &*words.as_ptr().cast::<Caller>() }
    }

    #[test]
    fn frames_are_followed_as_far_as_they_are_known() {
        // The caller's words, then two frames: 24 bytes by the stack pointer, and one with a frame
        // pointer, which is kept in the first one.
        let mut words = [0_u64; 64];
        let at = |index: usize, words: &[u64]| &raw const words[index] as u64;
        let (one, two, three) = (0x1111_0000_0001_u64, 0x1111_0000_0002_u64, 0x1111_0000_0003_u64);
        words[7] = one; // the caller's return address; its frame begins at 8
        words[9] = at(20, &words); // the frame pointer of the second frame
        words[11] = two;
        words[20] = 77;
        words[21] = three;
        KNOWN.learn(one - 1, Step { base: Base::Sp, offset: 32, bp: Saved::At(-24) });
        KNOWN.learn(two - 1, Step { base: Base::Bp, offset: 16, bp: Saved::At(-16) });
        KNOWN.learn(three - 1, Step { base: Base::Sp, offset: -8, bp: Saved::Same });
        let path = Path::of(caller_at(&words));
        assert_eq!(path.addresses(MOST_FRAMES), [one, two, three], "the last step goes nowhere");
        assert_eq!(path.addresses(2), [one, two]);
    }

    #[test]
    fn the_calls_of_this_test_are_found() {
        #[inline(never)]
        fn inner(words: &mut [u64; 8]) -> usize {
            let (sp, bp): (u64, u64);
            let address: u64;
            // SAFETY: reads registers.
            unsafe {
                core::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp",
                    out(reg) address, out(reg) sp, out(reg) bp, options(nostack, readonly));
            }
            let _ = words;
            let mut stack = Readable { end: sp, top: sp + STACK_BYTES as u64 };
            let mut frame = Frame { address, sp, bp: Some(bp) };
            let mut frames = 0;
            while let Some(caller) = frame.caller(&mut stack) {
                frame = caller;
                frames += 1;
                if frames == MOST_FRAMES {
                    break;
                }
            }
            frames
        }
        if objects::find(inner as *const () as u64).is_some() {
            assert!(inner(&mut [0; 8]) > 3, "the test's caller and its callers");
        }
    }
}
