//! The GS base of the calling thread: where its area is found.

use crate::layout::area::Area;
use crate::sys;
use core::arch::asm;

const ARCH_SET_GS: usize = 0x1001;
const ARCH_GET_GS: usize = 0x1004;
const ARCH_SET_FS: usize = 0x1002;
const ARCH_GET_FS: usize = 0x1003;

/// Through the kernel, since a processor or kernel may lack RDGSBASE; it is only asked at a
/// thread's start and the like.
pub(crate) fn base() -> usize {
    let mut base = 0_usize;
    // SAFETY: the kernel writes one word.
    unsafe { sys::syscall(sys::nr::ARCH_PRCTL, [ARCH_GET_GS, &raw mut base as usize, 0, 0, 0, 0]) };
    base
}

/// # Safety
/// From here on twin code of this thread uses what lies there: it must be the thread's area, and
/// stay.
pub(crate) unsafe fn set_base(base: usize) -> bool {
    // SAFETY: the caller's.
    unsafe { sys::syscall(sys::nr::ARCH_PRCTL, [ARCH_SET_GS, base, 0, 0, 0, 0]) == 0 }
}

pub(crate) fn fs_base() -> u64 {
    let mut base = 0_u64;
    // SAFETY: the kernel writes one word.
    unsafe { sys::syscall(sys::nr::ARCH_PRCTL, [ARCH_GET_FS, &raw mut base as usize, 0, 0, 0, 0]) };
    base
}

/// Where the storage of the calling thread is, as its libc has it; without a system call.
#[cfg(freestanding)]
pub(crate) fn thread_pointer() -> u64 {
    let pointer;
    // SAFETY: every libc for x86-64 keeps that address there.
    unsafe { asm!("mov {}, fs:[0]", out(reg) pointer, options(nostack, readonly, preserves_flags)) };
    pointer
}

/// # Safety
/// Only where no libc of the calling thread is in use any more, or yet.
pub(crate) unsafe fn clear_fs_base() {
    // SAFETY: the caller's.
    unsafe { sys::syscall(sys::nr::ARCH_PRCTL, [ARCH_SET_FS, 0, 0, 0, 0, 0]) };
}

/// The area of the calling thread.
///
/// # Safety
/// GS must have been set to an area.
#[inline]
pub(crate) unsafe fn area() -> &'static Area {
    let area: *const Area;
    // SAFETY: the first word of an area is its address; areas are never unmapped.
    unsafe {
        asm!("mov {}, gs:[0]", out(reg) area, options(nostack, readonly, preserves_flags));
        &*area
    }
}
