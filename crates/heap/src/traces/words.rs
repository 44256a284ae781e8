//! The words of a thread, in the part of its control block that glibc keeps free (`twin-format` has
//! their places; the profiler's tests compare them).

use core::arch::asm;

pub(super) const FIRST: usize = 0x80;
pub(super) const SECOND: usize = 0x88;
pub(super) const RETURN: usize = 0x90;
pub(super) const CURSOR: usize = 0x98;
pub(super) const FULL: usize = 0xa0;

pub(super) fn read<const AT: usize>() -> usize {
    let value;
    // SAFETY: a word of this thread's control block.
    unsafe { asm!("mov {}, fs:[{}]", out(reg) value, const AT, options(nostack, preserves_flags)) };
    value
}

pub(super) fn write<const AT: usize>(value: usize) {
    // SAFETY: a word of this thread's control block, which only twins and this library use.
    unsafe { asm!("mov fs:[{}], {}", const AT, in(reg) value, options(nostack, preserves_flags)) };
}
