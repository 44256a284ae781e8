//! System calls, without a libc in between, and what the processor tells. Each call returns what
//! the kernel returned, an error as its negative number.

use core::arch::asm;

pub(crate) mod nr {
    pub(crate) const READ: usize = 0;
    pub(crate) const WRITE: usize = 1;
    pub(crate) const CLOSE: usize = 3;
    pub(crate) const MMAP: usize = 9;
    pub(crate) const MUNMAP: usize = 11;
    pub(crate) const RT_SIGACTION: usize = 13;
    pub(crate) const RT_SIGPROCMASK: usize = 14;
    pub(crate) const RT_SIGRETURN: usize = 15;
    pub(crate) const MREMAP: usize = 25;
    pub(crate) const MADVISE: usize = 28;
    pub(crate) const GETPID: usize = 39;
    pub(crate) const GETTID: usize = 186;
    pub(crate) const SCHED_SETAFFINITY: usize = 203;
    pub(crate) const FUTEX: usize = 202;
    pub(crate) const TIMER_CREATE: usize = 222;
    pub(crate) const TIMER_SETTIME: usize = 223;
    pub(crate) const TIMER_DELETE: usize = 226;
    pub(crate) const EXIT_GROUP: usize = 231;
    pub(crate) const TGKILL: usize = 234;
    pub(crate) const SET_MEMPOLICY: usize = 238;
    pub(crate) const OPENAT: usize = 257;
    pub(crate) const READLINKAT: usize = 267;
}

/// # Safety
/// As the system call: its pointers must be good for what the kernel does with them.
#[inline]
pub(crate) unsafe fn syscall(number: usize, a: [usize; 6]) -> isize {
    let result;
    // SAFETY: the caller's, see above; the kernel clobbers rcx and r11 and nothing else.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2], in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    result
}

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
