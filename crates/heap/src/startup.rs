//! The constructor: it maps the shared memory that the profiler made, and from then on allocations
//! are recorded. Without it, or if the profiler has ended, the program runs as it would.

use crate::clock;
use crate::environment;
use crate::interpose::own_code;
use crate::layout::{MAGIC, MEMORY_NAME, MOST_RINGS, Region, VARIABLE, kind, region_bytes};
use crate::next;
use crate::record::{Record, write};
use crate::recording;
use crate::stack::MAIN_STACK_END;
use crate::sys::{self, nr, syscall};
use core::ffi::CStr;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

extern "C" fn constructor(_argc: i32, _argv: *mut *mut u8, passed: *mut *mut u8) {
    // Now, before there are several threads.
    next::next(next::MALLOC);
    let Some((path, end)) = environment::find(VARIABLE, passed) else { return };
    let Some((at, rings, has_clock)) = path.and_then(map) else { return };
    // The kernel puts the environment at the end of the main thread's stack. Libc may have moved it
    // elsewhere: then it is not near.
    const NEAR: u64 = 8 << 20;
    let near = &raw const path as u64;
    if end > near && end - near < NEAR {
        MAIN_STACK_END.store(end.next_multiple_of(4096), Relaxed);
    }
    // SAFETY: mapped for good, as large as that many rings are; this is the only constructor.
    let region = unsafe {
        let region = Region::new(at, rings, has_clock);
        // First: from then on records belong to the program that was executed now.
        if has_clock && clock::arm::begin(region) {
            clock::follow_forks();
        }
        recording::begin(region, page_of_one_process());
        region
    };
    // Breakpoints are perf events: where the clock has to do, there are none.
    if !has_clock {
        crate::traps::begin();
    }
    let is_interposed = u64::from(next::is_interposed(own_code()));
    let began =
        Record { kind: kind::BEGAN, ticks: sys::ticks(), address: is_interposed, ..Record::default() };
    write(&region, recording::process(), &began, false);
}

/// Maps the memory at a path that the profiler gave, and says for how many rings it is, and whether
/// there is a clock.
fn map(path: &CStr) -> Option<(*const u8, u32, bool)> {
    const AT_FDCWD: usize = -100_isize as usize;
    const O_RDWR: usize = 2;
    const O_CLOEXEC: usize = 0o2000000;
    const READ_AND_WRITE: usize = 3;
    const MAP_SHARED: usize = 1;
    // Once the profiler has ended, another process may have its number, with other files: these are
    // not opened.
    let mut link = [0_u8; 64];
    // SAFETY: a string with its zero, and the kernel writes at most the buffer.
    let length = unsafe {
        syscall(
            nr::READLINKAT,
            [AT_FDCWD, path.as_ptr() as usize, link.as_mut_ptr() as usize, link.len(), 0, 0],
        )
    };
    let link = link.get(..usize::try_from(length).ok()?)?;
    link.strip_prefix(b"/memfd:")?.strip_prefix(MEMORY_NAME.as_bytes())?;
    // SAFETY: a string with its zero.
    let file =
        unsafe { syscall(nr::OPENAT, [AT_FDCWD, path.as_ptr() as usize, O_RDWR | O_CLOEXEC, 0, 0, 0]) };
    let file = usize::try_from(file).ok()?;
    let mut head = [0_u64; 2];
    // SAFETY: the kernel writes at most the buffer.
    let read = unsafe { syscall(nr::READ, [file, head.as_mut_ptr() as usize, size_of_val(&head), 0, 0, 0]) };
    let (rings, has_clock) = (head[1] as u32, head[1] >> 32 == 1);
    let is_ours = read == size_of_val(&head) as isize
        && head[0] == MAGIC
        && rings.is_power_of_two()
        && rings <= MOST_RINGS;
    let at = if is_ours {
        // SAFETY: a new mapping, wherever the kernel likes.
        unsafe { syscall(nr::MMAP, [0, region_bytes(rings, has_clock), READ_AND_WRITE, MAP_SHARED, file, 0]) }
    } else {
        -1
    };
    // SAFETY: the file was opened above.
    unsafe { syscall(nr::CLOSE, [file, 0, 0, 0, 0, 0]) };
    (at > 0).then_some((at as *const u8, rings, has_clock))
}

/// A page that the kernel clears in forked children; null if it cannot.
fn page_of_one_process() -> *mut AtomicU32 {
    const READ_AND_WRITE: usize = 3;
    const PRIVATE_ANONYMOUS: usize = 0x22;
    const WIPE_ON_FORK: usize = 18;
    const NO_FILE: usize = -1_isize as usize;
    // SAFETY: a new mapping, wherever the kernel likes, and advice on it.
    unsafe {
        let page = syscall(nr::MMAP, [0, 4096, READ_AND_WRITE, PRIVATE_ANONYMOUS, NO_FILE, 0]);
        if page <= 0 || syscall(nr::MADVISE, [page as usize, 4096, WIPE_ON_FORK, 0, 0, 0]) < 0 {
            return core::ptr::null_mut();
        }
        page as *mut AtomicU32
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn(i32, *mut *mut u8, *mut *mut u8) = constructor;
