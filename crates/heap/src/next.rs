//! The functions behind ours: those that would be called without this library. They are looked up
//! at the first call of any of them, which comes from the dynamic loader itself.

use bare_calls::look_up;
use core::ffi::CStr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32};

/// To add a function: its number here, its name below, and the number of all.
pub(crate) const MALLOC: usize = 0;
pub(crate) const FREE: usize = 1;
pub(crate) const CALLOC: usize = 2;
pub(crate) const REALLOC: usize = 3;
pub(crate) const POSIX_MEMALIGN: usize = 4;
pub(crate) const ALIGNED_ALLOC: usize = 5;
pub(crate) const MEMALIGN: usize = 6;
pub(crate) const VALLOC: usize = 7;
pub(crate) const PVALLOC: usize = 8;
pub(crate) const REALLOCARRAY: usize = 9;
pub(crate) const PRCTL: usize = 10;
pub(crate) const MMAP: usize = 11;
pub(crate) const MUNMAP: usize = 12;
pub(crate) const MREMAP: usize = 13;
const ALL: usize = 14;

const NAMES: [&CStr; ALL] = [
    c"malloc",
    c"free",
    c"calloc",
    c"realloc",
    c"posix_memalign",
    c"aligned_alloc",
    c"memalign",
    c"valloc",
    c"pvalloc",
    c"reallocarray",
    c"prctl",
    c"mmap",
    c"munmap",
    c"mremap",
];

/// A function, or null while it is not known.
pub(crate) static NEXT: [AtomicPtr<()>; ALL] = [const { AtomicPtr::new(core::ptr::null_mut()) }; ALL];

const UNKNOWN: u32 = 0;
const BEING_FOUND: u32 = 1;
const KNOWN: u32 = 2;
static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);

/// The address of a function; null if there is none, or as long as it is being looked up: then the
/// arena must do.
pub(crate) fn next(function: usize) -> *mut () {
    if STATE.load(Acquire) != KNOWN && STATE.compare_exchange(UNKNOWN, BEING_FOUND, Acquire, Relaxed).is_ok()
    {
        // Looking up may allocate and free: both find `BEING_FOUND`. None is called before all are
        // known, since what one of them allocates another one frees.
        let mut found = [core::ptr::null_mut(); ALL];
        for (place, name) in found.iter_mut().zip(NAMES) {
            *place = look_up(name);
        }
        for (number, weak) in weak() {
            if found[number].is_null() {
                found[number] = weak;
            }
        }
        for (next, found) in NEXT.iter().zip(found) {
            next.store(found, Relaxed);
        }
        STATE.store(KNOWN, Release);
    }
    NEXT[function].load(Acquire)
}

/// Calls the next function of a number and type; `$otherwise` while there is none.
macro_rules! call_next {
    ($function:expr, fn($($type:ty),*) -> $result:ty, ($($argument:expr),*), else $otherwise:expr) => {{
        let address = next($function);
        if address.is_null() {
            $otherwise
        } else {
            // SAFETY: a function of that name has that type; its arguments are the program's.
            unsafe {
                let function: unsafe extern "C" fn($($type),*) -> $result = core::mem::transmute(address);
                function($($argument),*)
            }
        }
    }};
}
pub(crate) use call_next;

/// Glibc's own names for them: before 2.34 a program need not have `dlsym`.
fn weak() -> [(usize, *mut ()); 5] {
    let (malloc, free, calloc, realloc, memalign);
    // SAFETY: reads the addresses of weak symbols, which are 0 where there are none.
    unsafe {
        core::arch::asm!(
            ".weak __libc_malloc", "mov {}, [rip + __libc_malloc@GOTPCREL]",
            ".weak __libc_free", "mov {}, [rip + __libc_free@GOTPCREL]",
            ".weak __libc_calloc", "mov {}, [rip + __libc_calloc@GOTPCREL]",
            ".weak __libc_realloc", "mov {}, [rip + __libc_realloc@GOTPCREL]",
            ".weak __libc_memalign", "mov {}, [rip + __libc_memalign@GOTPCREL]",
            out(reg) malloc, out(reg) free, out(reg) calloc, out(reg) realloc, out(reg) memalign,
            options(nostack, readonly, preserves_flags));
    }
    [(MALLOC, malloc), (FREE, free), (CALLOC, calloc), (REALLOC, realloc), (MEMALIGN, memalign)]
}

/// Whether the program's calls of `malloc` come to this library, of which `own` is code. The
/// program may have a `malloc` of its own.
pub(crate) fn is_interposed(own: *const ()) -> bool {
    /// More than the code of this library, less than its data behind it.
    const CODE_BYTES: usize = 32 << 10;
    let malloc: usize;
    // SAFETY: reads the address that the loader found for the name.
    unsafe {
        core::arch::asm!("mov {}, [rip + malloc@GOTPCREL]", out(reg) malloc,
            options(nostack, readonly, preserves_flags));
    }
    malloc.abs_diff(own as usize) < CODE_BYTES
}
