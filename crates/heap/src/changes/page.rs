//! The shared page, mapped into this process.

use super::layout::{MAGIC, Page, asked};
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

/// Maps the page of a file; none if there is no such file, or it is not one of ours.
pub(super) fn open(path: &CStr) -> Option<&'static Page> {
    let page = map(path)?;
    PAGE.store(core::ptr::from_ref(page).cast_mut(), Release);
    Some(page)
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
