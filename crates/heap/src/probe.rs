//! A load is *probed*: a breakpoint stops the thread right before it, this library works out the
//! address from the thread's registers, reads it in the program's place and takes the time.
//!
//! ```text
//!   fence, ticks, fence, read, fence, ticks      how long it takes
//!   fence, ticks, fence, read, fence, ticks      the same again, when the line is in L1
//! ```
//!
//! What both have in common, the time stamps and fences, is taken off by the difference.
//!
//! A core may have begun to execute the load when the breakpoint stops it: Intel's Sapphire Rapids
//! brings lines from L2 and L3 by then, not from memory. So what a probe tells for sure is whether
//! the line came from *beyond* the caches, and how long that took.

use crate::layout::{NO_REGISTER, OWN_ADDRESS, PROBES, Region, kind};
use crate::record::{Record, write};
use crate::sys;
use core::arch::x86_64::{__rdtscp, _mm_lfence, _mm_mfence};
use core::sync::atomic::Ordering::{Acquire, Relaxed};

/// The registers of a stopped thread, by the numbers that instructions have for them.
pub type General = [u64; 16];

/// The ticks of both readings, in one word; none if the load was not read.
pub fn packed(first: u32, again: u32) -> u64 {
    u64::from(first) << 32 | u64::from(again)
}

/// The first reading and the second one.
pub fn unpacked(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

/// Probes the load that a thread stands before, if it is to be probed; whether it was.
///
/// # Safety
/// The registers are those of a thread that stands at `ip` and is about to execute what is there:
/// what the load reads, this may read.
pub unsafe fn probe(region: &Region, process: u32, ip: u64, general: &General) -> bool {
    for number in 0..PROBES {
        let wanted = region.probe(number);
        if wanted.ip.load(Acquire) != ip || wanted.process.load(Relaxed) != process {
            continue;
        }
        let registers = wanted.registers.load(Relaxed).to_le_bytes();
        let thread = wanted.thread.load(Relaxed);
        let displacement = wanted.displacement.load(Relaxed);
        let is_timed = wanted.is_timed.load(Relaxed) != 0;
        // The profiler may have been putting another load in its place.
        if wanted.ip.load(Acquire) != ip {
            return false;
        }
        let Some(address) = address(registers, displacement, ip, general) else { return false };
        // SAFETY: the caller's.
        let ticks = if is_timed { unsafe { timed(address) } } else { 0 };
        let record = Record {
            kind: kind::PROBED,
            ticks: sys::ticks(),
            address,
            size: ticks,
            return_address: ip,
            key: u64::from(thread),
            is_kept: false,
        };
        write(region, process, &record, false);
        return true;
    }
    false
}

fn address(registers: [u8; 4], displacement: u64, ip: u64, general: &General) -> Option<u64> {
    let [base, index, scale, by_thread] = registers;
    let value = |register: u8| match register {
        NO_REGISTER => Some(0),
        OWN_ADDRESS => Some(ip),
        _ => general.get(usize::from(register)).copied(),
    };
    let index = value(index)?.wrapping_mul(u64::from(scale));
    let thread = if by_thread == 0 { 0 } else { sys::thread_pointer() };
    Some(value(base)?.wrapping_add(index).wrapping_add(displacement).wrapping_add(thread))
}

/// The ticks that it takes to read a byte, twice.
///
/// # Safety
/// It may be read.
unsafe fn timed(address: u64) -> u64 {
    let own = 0_u8;
    // SAFETY: a variable of ours; the address is the caller's.
    unsafe {
        // The first time, the core waits for this code itself.
        ticks_of(&raw const own as u64);
        let first = ticks_of(address);
        packed(first.max(1), ticks_of(address))
    }
}

/// The ticks that it takes to read a byte. Never inlined: each reading is by the same code, which
/// is in the caches when it counts.
///
/// # Safety
/// It may be read.
#[inline(never)]
unsafe fn ticks_of(address: u64) -> u32 {
    let mut cpu = 0;
    // SAFETY: the caller's; every x86-64 that the profiler takes probes on has these.
    unsafe {
        _mm_mfence();
        _mm_lfence();
        let began = __rdtscp(&raw mut cpu);
        _mm_lfence();
        core::ptr::read_volatile(address as *const u8);
        _mm_lfence();
        u32::try_from(__rdtscp(&raw mut cpu).wrapping_sub(began)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::tests::region;
    use core::sync::atomic::Ordering::Release;

    fn wanted(region: &Region, registers: [u8; 4], displacement: u64) {
        let probe = region.probe(2);
        probe.process.store(7, Relaxed);
        probe.registers.store(u32::from_le_bytes(registers), Relaxed);
        probe.displacement.store(displacement, Relaxed);
        probe.is_timed.store(1, Relaxed);
        probe.ip.store(0x1000, Release);
    }

    /// What the last probe wrote: the address, and the ticks.
    fn told(region: &Region) -> (u64, (u32, u32)) {
        let slots = (0..region.rings()).map(|ring| (ring, region.head(ring).head.load(Relaxed)));
        let (ring, written) = slots.max_by_key(|(_, written)| *written).unwrap();
        let slot = region.slot(ring, written - 1);
        assert_eq!(slot.kind.load(Relaxed) & 0xffff_ffff, kind::PROBED);
        (slot.address.load(Relaxed), unpacked(slot.size.load(Relaxed)))
    }

    #[test]
    fn a_load_is_read_at_its_address_and_timed() {
        let region = region(1);
        let data = [1_u64; 64];
        let mut general = [0; 16];
        general[6] = data.as_ptr() as u64;
        general[1] = 3;
        let probe = |ip| {
            // SAFETY: the operand lies in `data`.
            unsafe { probe(&region, 7, ip, &general) }
        };
        wanted(&region, [6, 1, 8, 0], 16);
        assert!(probe(0x1000) && !probe(0x1001), "another instruction is none of ours");
        let (address, (first, again)) = told(&region);
        assert_eq!(address, &raw const data[5] as u64);
        assert!(first > 0 && again > 0, "{first} {again}");
        region.probe(2).is_timed.store(0, Relaxed);
        assert!(probe(0x1000));
        assert_eq!(told(&region).1, (0, 0), "not read");
        region.probe(2).process.store(8, Relaxed);
        assert!(!probe(0x1000), "another process's");
    }

    #[test]
    fn addresses_may_be_relative_to_the_load() {
        let general = [5; 16];
        assert_eq!(address([OWN_ADDRESS, NO_REGISTER, 1, 0], 0x20, 0x1000, &general), Some(0x1020));
        assert_eq!(address([NO_REGISTER, 3, 4, 0], 0x20, 0x1000, &general), Some(0x34));
        assert_eq!(address([40, 3, 4, 0], 0x20, 0x1000, &general), None);
        assert!(address([NO_REGISTER, NO_REGISTER, 1, 1], 0, 0, &general).unwrap() > 0x1000);
    }
}
