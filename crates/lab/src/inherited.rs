//! What this process inherited from the one that started it, recorded before the standard library
//! changes it: that ignores SIGPIPE, and opens standard streams that were closed.

use crate::sys;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

static IGNORED: AtomicU64 = AtomicU64::new(0);
static BLOCKED: AtomicU64 = AtomicU64::new(0);
static CLOSED: AtomicU64 = AtomicU64::new(0);

/// Signals and descriptors as sets of bits; the lowest bit is signal 1, or standard input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inherited {
    /// SIGPIPE and libc's own signals (32, 33), if they were ignored: libc ignores these in what it
    /// spawns. The kernel knows the other signals, which are unchanged.
    pub ignored: u64,
    pub blocked: u64,
    pub closed: u32,
}

/// What was inherited. Of no use in tests, which other programs start.
pub fn at_start() -> Inherited {
    // Named here, so that no linker drops it.
    std::hint::black_box(&BEFORE_MAIN);
    Inherited {
        ignored: IGNORED.load(Relaxed),
        blocked: BLOCKED.load(Relaxed),
        closed: CLOSED.load(Relaxed) as u32,
    }
}

/// From here on a write beyond the limit on file sizes (`ulimit -f`) fails, and does not kill this
/// process. Programs started by this one do not inherit that: a signal with a handler is not
/// ignored.
pub fn outlive_file_limits() {
    extern "C" fn nothing(_: libc::c_int) {}
    if sys::ignored(libc::SIGXFSZ) == 0 {
        sys::on_signal(libc::SIGXFSZ, nothing);
    }
}

/// Has [`record`] run before `main`.
#[used]
// SAFETY: an array of functions of this type, each of which is called once.
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = record;

/// Runs before `main`: the dynamic loader, or what stands for it, calls it.
extern "C" fn record() {
    let ignored = [libc::SIGPIPE, 32, 33].map(sys::ignored);
    IGNORED.store(ignored.iter().fold(0, |all, one| all | one), Relaxed);
    BLOCKED.store(sys::blocked(), Relaxed);
    let closed = (0..3).filter(|&fd| sys::is_closed(fd)).fold(0, |all, fd| all | 1 << fd);
    CLOSED.store(closed, Relaxed);
}
