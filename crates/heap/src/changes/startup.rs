//! The constructor: it maps the shared page and begins what is asked for there. Without the page
//! the program runs as it would.

use super::layout::{MAGIC, Page, VARIABLE, asked, count, done};
use super::{blocks, pages, placement};
use crate::environment;
use crate::next;
use crate::sys::{nr, syscall};
use core::ffi::CStr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

static PAGE: AtomicPtr<Page> = AtomicPtr::new(core::ptr::null_mut());

/// The shared page, once it is there.
pub(super) fn page() -> Option<&'static Page> {
    // SAFETY: mapped for good, see `map`.
    unsafe { PAGE.load(Acquire).as_ref() }
}

extern "C" fn constructor(_argc: i32, _argv: *mut *mut u8, passed: *mut *mut u8) {
    // Now, before there are several threads.
    next::next(next::MALLOC);
    let Some((Some(path), _)) = environment::find(VARIABLE, passed) else { return };
    let Some(page) = map(path) else { return };
    PAGE.store(core::ptr::from_ref(page).cast_mut(), Release);
    count(page, done::PROCESSES);
    placement::begin(page);
    blocks::begin(page);
    pages::begin(page);
}

fn map(path: &CStr) -> Option<&'static Page> {
    const AT_FDCWD: usize = -100_isize as usize;
    const O_RDWR: usize = 2;
    const O_CLOEXEC: usize = 0o2000000;
    const READ_AND_WRITE: usize = 3;
    const MAP_SHARED: usize = 1;
    // SAFETY: a string with its zero.
    let file =
        unsafe { syscall(nr::OPENAT, [AT_FDCWD, path.as_ptr() as usize, O_RDWR | O_CLOEXEC, 0, 0, 0]) };
    let file = usize::try_from(file).ok()?;
    let mut magic = 0_u64;
    // SAFETY: the kernel writes at most the word, and maps wherever it likes.
    let at = unsafe {
        let read = syscall(nr::READ, [file, (&raw mut magic) as usize, size_of_val(&magic), 0, 0, 0]);
        let at = if read == 8 && magic == MAGIC {
            syscall(nr::MMAP, [0, size_of::<Page>(), READ_AND_WRITE, MAP_SHARED, file, 0])
        } else {
            -1
        };
        syscall(nr::CLOSE, [file, 0, 0, 0, 0, 0]);
        at
    };
    // SAFETY: mapped for good, and the file is as large as the page; all of it is atomics.
    let page = unsafe { (at > 0).then(|| &*(at as *const Page)) }?;
    (page[asked::MAGIC].load(Relaxed) == MAGIC).then_some(page)
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn(i32, *mut *mut u8, *mut *mut u8) = constructor;
