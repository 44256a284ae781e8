//! A chain of loads that this process runs for its calibrations: each load reads where the next one
//! reads.

use std::time::Duration;

const LINE_BYTES: usize = 64;

/// An area whose lines each point to another one: one circle through all of them, by a linear
/// congruential generator of full period, which prefetchers do not follow.
pub(crate) struct Chain {
    words: Vec<u64>,
}

/// Where the chain's code is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    pub load: u64,
    pub behind_load: u64,
    /// The register that holds the address, by the number that instructions have for it.
    pub register: u8,
}

impl Chain {
    /// `bytes` is a power of two.
    pub(crate) fn of(bytes: usize) -> Self {
        const WORDS: usize = LINE_BYTES / 8;
        let lines = bytes / LINE_BYTES;
        assert!(lines.is_power_of_two(), "{bytes}");
        let mut words = vec![0_u64; lines * WORDS];
        let base = words.as_ptr() as u64;
        for line in 0..lines {
            let next = (line.wrapping_mul(0x5_DEEC_E66D) + 11) % lines;
            words[line * WORDS] = base + (next * LINE_BYTES) as u64;
        }
        Self { words }
    }

    pub(crate) fn lines(&self) -> usize {
        self.words.len() * 8 / LINE_BYTES
    }

    pub(crate) fn start(&self) -> u64 {
        self.words.as_ptr() as u64
    }

    /// Follows the chain from `at`, a line of it; returns where it got to.
    pub(crate) fn go(&self, at: u64, steps: u64) -> (u64, Places) {
        assert!(self.offset(at) < self.words.len() * 8, "{at:#x}");
        chase(at, steps)
    }

    /// Takes the lines of the next steps from `at` on out of all caches: memory serves them.
    pub(crate) fn evict(&self, at: u64, steps: u64) {
        let next = |at: &u64| self.words.get(self.offset(*at) / 8).copied();
        for line in std::iter::successors(Some(at), next).take(steps as usize) {
            // SAFETY: a line of this area; what is in it stays as it is.
            unsafe { core::arch::x86_64::_mm_clflush(line as *const u8) };
        }
        // SAFETY: every x86-64 has it.
        unsafe { core::arch::x86_64::_mm_mfence() };
    }

    fn offset(&self, at: u64) -> usize {
        at.wrapping_sub(self.start()) as usize
    }
}

pub(crate) fn thread_cpu_time() -> Duration {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
}

/// It is never inlined, so that its loop stands at one address.
#[inline(never)]
fn chase(at: u64, steps: u64) -> (u64, Places) {
    const RSI: u8 = 6;
    let (mut at, mut load, mut behind_load, mut left) = (at, 0_u64, 0_u64, steps);
    // SAFETY: reads only; every pointer in the area leads to another line of it, and the area
    // outlives the call.
    unsafe {
        std::arch::asm!(
            "lea {load}, [rip + 2f]",
            "lea {behind}, [rip + 3f]",
            "2:",
            "mov rsi, [rsi]",
            "3:",
            "add {sum}, 1",
            "add {sum}, 1",
            "add {sum}, 1",
            "add {sum}, 1",
            "dec {left}",
            "jnz 2b",
            inout("rsi") at,
            load = out(reg) load,
            behind = out(reg) behind_load,
            left = inout(reg) left,
            sum = out(reg) _,
            options(nostack, readonly),
        );
    }
    let _ = left;
    (at, Places { load, behind_load, register: RSI })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_goes_through_the_whole_area() {
        let chain = Chain::of(1 << 20);
        let (base, bytes) = (chain.start(), 1 << 20);
        let (at, places) = chain.go(base, chain.lines() as u64 - 1);
        assert!(at != base && (at - base) % LINE_BYTES as u64 == 0 && at - base < bytes);
        assert_eq!(places.behind_load, places.load + 3);
        assert_eq!(chain.go(at, 1).0, base, "back at the start after one round");
    }
}
