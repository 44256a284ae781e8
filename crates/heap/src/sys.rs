//! System calls, without a libc in between, and what the processor tells. Each call returns what
//! the kernel returned, an error as its negative number.

pub(crate) use bare_calls::{nr, syscall};
use core::arch::asm;

pub(crate) fn process() -> u32 {
    // SAFETY: it takes no argument.
    unsafe { syscall(nr::GETPID, [0; 6]) as u32 }
}

pub(crate) fn thread() -> u32 {
    // SAFETY: it takes no argument.
    unsafe { syscall(nr::GETTID, [0; 6]) as u32 }
}

/// Whether the eight bytes at an address may be read. The kernel reads them as a signal mask before
/// it finds that it is not told what to do with it. No sandbox that a libc lives in forbids it.
pub(crate) fn may_read(address: u64) -> bool {
    const NOTHING: usize = -1_isize as usize;
    const EINVAL: isize = -22;
    // SAFETY: the kernel checks the pointer; it writes nothing.
    unsafe { syscall(nr::RT_SIGPROCMASK, [NOTHING, address as usize, 0, 8, 0, 0]) == EINVAL }
}

/// The time stamp counter.
#[inline]
pub(crate) fn ticks() -> u64 {
    // SAFETY: every x86-64 has it. A process that forbids it to itself records nothing any more.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The thread pointer, by which threads are told apart.
#[inline]
pub(crate) fn thread_pointer() -> u64 {
    let pointer;
    // SAFETY: the x86-64 ABI has a pointer to itself there; a `malloc` that runs relies on it, too.
    unsafe { asm!("mov {}, fs:[0]", out(reg) pointer, options(nostack, readonly, preserves_flags)) };
    pointer
}
