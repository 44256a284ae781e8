//! What this process began with, looked at before the standard library changes it: that ignores SIGPIPE, and opens standard streams
//! that were closed.

use crate::sys;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

static IGNORED: AtomicU64 = AtomicU64::new(0);
static BLOCKED: AtomicU64 = AtomicU64::new(0);
static CLOSED: AtomicU64 = AtomicU64::new(0);

/// As sets of bits, of which the lowest is signal 1, or standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inherited {
    /// SIGPIPE and libc's own signals (32, 33), if they were ignored: libc ignores these in what it spawns. Others are as they were: ask the kernel.
    pub ignored: u64,
    pub blocked: u64,
    pub closed: u32,
}

/// What was found. None of it holds for tests, which others start.
pub fn at_start() -> Inherited {
    // Named here, so that no linker leaves it out.
    std::hint::black_box(&sys::BEFORE_MAIN);
    Inherited {
        ignored: IGNORED.load(Relaxed),
        blocked: BLOCKED.load(Relaxed),
        closed: CLOSED.load(Relaxed) as u32,
    }
}

/// From here on a write beyond what the shell allows a file (`ulimit -f`) fails, and ends nobody in the middle of it. Programs that
/// are started do not inherit that: what is handled is not ignored.
pub fn outlive_file_limits() {
    extern "C" fn nothing(_: libc::c_int) {}
    if sys::ignored(libc::SIGXFSZ) == 0 {
        sys::on_signal(libc::SIGXFSZ, nothing);
    }
}

/// Before `main`, by the dynamic loader or what stands for it.
pub(crate) extern "C" fn record() {
    let ignored = [libc::SIGPIPE, 32, 33].map(sys::ignored);
    IGNORED.store(ignored.iter().fold(0, |all, one| all | one), Relaxed);
    BLOCKED.store(sys::blocked(), Relaxed);
    let closed = (0..3).filter(|&fd| sys::is_closed(fd)).fold(0, |all, fd| all | 1 << fd);
    CLOSED.store(closed, Relaxed);
}
