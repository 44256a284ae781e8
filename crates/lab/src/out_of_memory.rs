//! What is said where memory ends. The standard library aborts with `memory allocation of 5 bytes
//! failed`: neither what took the memory away (`ulimit -v`), nor an exit code that scripts know.
//!
//! An allocator notes that memory was refused. Code that can do without goes on. Where the standard
//! library then aborts, a handler of SIGABRT says which limit it was, and ends with exit code 3
//! (not possible here). What it does is allowed in a signal handler, and takes no memory.

use crate::sys;
use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Write as _;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// Of the latest request that was refused; 0: none.
static REFUSED_BYTES: AtomicUsize = AtomicUsize::new(0);

const NOT_POSSIBLE_HERE: libc::c_int = 3;

/// The system's allocator, which notes what it refuses.
#[derive(Debug)]
pub struct NotingAllocator;

// SAFETY: each method passes its arguments on to the system's allocator and returns what that
// returns.
unsafe impl GlobalAlloc for NotingAllocator {
    // SAFETY: what is asked of callers is what the system's allocator asks.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        noted(unsafe { System.alloc(layout) }, layout.size())
    }
    // SAFETY: what is asked of callers is what the system's allocator asks.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        noted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }
    // SAFETY: what is asked of callers is what the system's allocator asks.
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        noted(unsafe { System.realloc(at, layout, size) }, size)
    }
    // SAFETY: what is asked of callers is what the system's allocator asks.
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[inline]
fn noted(at: *mut u8, size: usize) -> *mut u8 {
    if at.is_null() {
        REFUSED_BYTES.store(size, Relaxed);
    }
    at
}

/// From here on, an end for lack of memory is told. Started programs do not inherit that.
pub fn tell() {
    if sys::ignored(libc::SIGABRT) == 0 {
        sys::on_signal(libc::SIGABRT, on_abort);
    }
}

extern "C" fn on_abort(_: libc::c_int) {
    let bytes = REFUSED_BYTES.load(Relaxed);
    if bytes == 0 {
        return; // another cause: `abort` ends the process when this returns
    }
    let mut line = Line::default();
    let _ = match limit() {
        Some((what, limit, option)) => writeln!(
            line,
            "gleaner: memory: the {what} limited to {} MiB (ulimit -{option}), and {bytes} bytes more are needed",
            limit >> 20
        ),
        None => writeln!(line, "gleaner: memory: none is left, and {bytes} bytes more are needed"),
    };
    sys::end_with_message(&line.text[..line.size], NOT_POSSIBLE_HERE);
}

/// The limit that is nearest.
fn limit() -> Option<(&'static str, u64, char)> {
    let space = sys::soft_limit(libc::RLIMIT_AS).map(|limit| ("address space is", limit, 'v'));
    let data = sys::soft_limit(libc::RLIMIT_DATA).map(|limit| ("size of data is", limit, 'd'));
    [space, data].into_iter().flatten().min_by_key(|(_, limit, _)| *limit)
}

/// A line in the making, on the stack.
struct Line {
    text: [u8; 160],
    size: usize,
}

impl Default for Line {
    fn default() -> Self {
        Self { text: [0; 160], size: 0 }
    }
}

impl std::fmt::Write for Line {
    fn write_str(&mut self, more: &str) -> std::fmt::Result {
        let space = self.text.get_mut(self.size..self.size + more.len()).ok_or(std::fmt::Error)?;
        space.copy_from_slice(more.as_bytes());
        self.size += more.len();
        Ok(())
    }
}
