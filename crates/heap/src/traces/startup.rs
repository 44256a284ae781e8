//! The constructor: it maps the shared memory that the profiler made, and the main thread begins to
//! write down its accesses. Without it, or if the profiler has ended, the program runs as it would.

use super::layout::{CHUNK_BYTES, MAGIC, MEMORY_NAME, REGION_BYTES, VARIABLE};
use super::words::{self, CURSOR, FULL};
use super::{chunks, full, threads};
use crate::sys::{nr, syscall};
use core::ffi::CStr;
use core::sync::atomic::Ordering::Relaxed;

extern "C" fn constructor(_argc: i32, _argv: *mut *mut u8, environment: *mut *mut u8) {
    if environment.is_null() {
        return;
    }
    let mut path = None;
    for index in 0.. {
        // SAFETY: an environment ends with a null.
        let entry = unsafe { *environment.add(index) };
        if entry.is_null() {
            break;
        }
        // SAFETY: a string with its zero.
        let entry = unsafe { CStr::from_ptr(entry.cast()) };
        if let Some(value) = entry.to_bytes_with_nul().strip_prefix(VARIABLE.as_bytes()) {
            path = value.strip_prefix(b"=").and_then(|value| CStr::from_bytes_with_nul(value).ok()).or(path);
        }
    }
    // A libc that uses these words itself is not one that twins are made for.
    if words::read::<CURSOR>() != 0 || words::read::<FULL>() != 0 {
        return;
    }
    let Some(region) = path.and_then(map) else { return };
    chunks::begin(region, full::full as *const () as usize);
    if let Some(header) = chunks::header() {
        header.processes.fetch_add(1, Relaxed);
    }
    threads::follow_forks();
    chunks::take();
}

/// Maps the memory at a path that the profiler gave, so that chunks lie at multiples of their size.
fn map(path: &CStr) -> Option<usize> {
    const AT_FDCWD: usize = -100_isize as usize;
    const O_RDWR: usize = 2;
    const O_CLOEXEC: usize = 0o2_000_000;
    const NOTHING: usize = 0;
    const READ_AND_WRITE: usize = 3;
    const MAP_SHARED: usize = 1;
    const MAP_FIXED: usize = 0x10;
    const PRIVATE_ANONYMOUS: usize = 0x22;
    const NO_FILE: usize = -1_isize as usize;
    // Once the profiler has ended, another process may have its number, with other files.
    let mut link = [0_u8; 64];
    // SAFETY: a string with its zero, and the kernel writes at most the buffer.
    let length = unsafe {
        let (path, link, size) = (path.as_ptr() as usize, link.as_mut_ptr() as usize, link.len());
        syscall(nr::READLINKAT, [AT_FDCWD, path, link, size, 0, 0])
    };
    let link = link.get(..usize::try_from(length).ok()?)?;
    link.strip_prefix(b"/memfd:")?.strip_prefix(MEMORY_NAME.as_bytes())?;
    // SAFETY: a string with its zero.
    let file =
        unsafe { syscall(nr::OPENAT, [AT_FDCWD, path.as_ptr() as usize, O_RDWR | O_CLOEXEC, 0, 0, 0]) };
    let file = usize::try_from(file).ok()?;
    let mut magic = 0_u64;
    // SAFETY: the kernel writes at most the word; new mappings, the second one over the first.
    let at = unsafe {
        let read = syscall(nr::READ, [file, &raw mut magic as usize, 8, 0, 0, 0]);
        let area = if read == 8 && magic == MAGIC {
            let size = REGION_BYTES + CHUNK_BYTES;
            syscall(nr::MMAP, [0, size, NOTHING, PRIVATE_ANONYMOUS, NO_FILE, 0])
        } else {
            -1
        };
        let at = if area > 0 {
            let at = (area as usize).next_multiple_of(CHUNK_BYTES);
            syscall(nr::MMAP, [at, REGION_BYTES, READ_AND_WRITE, MAP_SHARED | MAP_FIXED, file, 0])
        } else {
            -1
        };
        syscall(nr::CLOSE, [file, 0, 0, 0, 0, 0]);
        at
    };
    (at > 0).then_some(at as usize)
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn(i32, *mut *mut u8, *mut *mut u8) = constructor;
