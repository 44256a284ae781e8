//! What a library without a libc needs of one: system calls, the functions that the compiler calls
//! by itself, and how to find a libc's where the program has one.
//!
//! The libraries inside other programs' processes (the heap and runtime rooms) are compiled by
//! rustc alone, with this as their only help, since the program may have any libc. So it uses
//! nothing. To add a system call: its number here, its function where it is used.
#![no_std]

mod look_up;
mod memory;

pub use look_up::look_up;

use core::arch::asm;

/// Numbers of system calls on x86-64.
pub mod nr {
    pub const READ: usize = 0;
    pub const WRITE: usize = 1;
    pub const CLOSE: usize = 3;
    pub const FSTAT: usize = 5;
    pub const POLL: usize = 7;
    pub const MMAP: usize = 9;
    pub const MPROTECT: usize = 10;
    pub const MUNMAP: usize = 11;
    pub const BRK: usize = 12;
    pub const RT_SIGACTION: usize = 13;
    pub const RT_SIGPROCMASK: usize = 14;
    pub const RT_SIGRETURN: usize = 15;
    pub const PREAD: usize = 17;
    pub const PWRITE: usize = 18;
    pub const SCHED_YIELD: usize = 24;
    pub const MREMAP: usize = 25;
    pub const MADVISE: usize = 28;
    pub const SHMAT: usize = 30;
    pub const DUP2: usize = 33;
    pub const NANOSLEEP: usize = 35;
    pub const GETPID: usize = 39;
    pub const CLONE: usize = 56;
    pub const EXECVE: usize = 59;
    pub const KILL: usize = 62;
    pub const UNAME: usize = 63;
    pub const FCNTL: usize = 72;
    pub const CHDIR: usize = 80;
    pub const READLINK: usize = 89;
    pub const GETPPID: usize = 110;
    pub const SIGALTSTACK: usize = 131;
    pub const GETPRIORITY: usize = 140;
    pub const SCHED_SETSCHEDULER: usize = 144;
    pub const SCHED_GETSCHEDULER: usize = 145;
    pub const MLOCKALL: usize = 151;
    pub const MUNLOCKALL: usize = 152;
    pub const PRCTL: usize = 157;
    pub const ARCH_PRCTL: usize = 158;
    pub const GETTID: usize = 186;
    pub const FUTEX: usize = 202;
    pub const SCHED_SETAFFINITY: usize = 203;
    pub const SCHED_GETAFFINITY: usize = 204;
    pub const GETDENTS64: usize = 217;
    pub const TIMER_CREATE: usize = 222;
    pub const TIMER_SETTIME: usize = 223;
    pub const TIMER_DELETE: usize = 226;
    pub const CLOCK_GETTIME: usize = 228;
    pub const EXIT_GROUP: usize = 231;
    pub const TGKILL: usize = 234;
    pub const SET_MEMPOLICY: usize = 238;
    pub const OPENAT: usize = 257;
    pub const READLINKAT: usize = 267;
    pub const PRLIMIT: usize = 302;
    pub const KCMP: usize = 312;
    pub const SCHED_SETATTR: usize = 314;
    pub const SECCOMP: usize = 317;
    pub const GETRANDOM: usize = 318;
    pub const MEMBARRIER: usize = 324;
    pub const PIDFD_OPEN: usize = 434;
    pub const CLONE3: usize = 435;
    pub const CLOSE_RANGE: usize = 436;
}

/// A system call: what the kernel returned, an error as its negative number.
///
/// # Safety
/// As the system call: its pointers must be good for what the kernel does with them.
#[inline]
pub unsafe fn syscall(number: usize, a: [usize; 6]) -> isize {
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
