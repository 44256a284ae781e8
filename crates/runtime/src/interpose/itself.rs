//! A program asks for its own file, or executes it anew. `/proc/self/exe` is the rewritten copy,
//! and in a scavenger the primary's: a copy cannot run outside of a harvest, and no program shall
//! see it. So reading the link gives the file that was rewritten, and executing it, or the copy by
//! its name, executes that file.
//!
//! To add a function that takes a path first: a line of `by_path`. They go on to libc's by a jump,
//! with all arguments.

use crate::interpose::mine::{RegisterPair, mine};
use crate::interpose::next::{Next, call_next, fail};
use crate::layout::area::kind;
use crate::layout::page;
use crate::sys;
use crate::sys::decimal::number;
use core::ffi::CStr;
use core::sync::atomic::Ordering::Relaxed;

const ENOSYS: i32 = 38;

/// A path of `/proc` by which a process finds its own file.
fn is_own_link(path: &[u8], pid: i32) -> bool {
    let Some(process) = path.strip_prefix(b"/proc/").and_then(|rest| rest.strip_suffix(b"/exe")) else {
        return false;
    };
    process == b"self" || process == b"thread-self" || number(process) == Some(pid)
}

/// The file that the calling program takes itself for, and the copy that runs in its place.
fn files() -> Option<(&'static CStr, &'static CStr)> {
    let area = mine()?;
    let page = area.region().page();
    let (original, copy) = if area.kind.load(Relaxed) == kind::PRIMARY {
        (page.original, page.file)
    } else {
        let row = area.scavenger();
        (row.original, row.file)
    };
    Some((page::string(page, original)?, page::string(page, copy)?))
}

/// What is meant by a path, where it is the program's own file.
fn meant(path: *const i8) -> Option<&'static CStr> {
    if path.is_null() {
        return None;
    }
    let (original, copy) = files()?;
    // SAFETY: the program's string, as libc's functions take it.
    let path = unsafe { CStr::from_ptr(path) };
    let link = || path.to_bytes().starts_with(b"/proc/") && is_own_link(path.to_bytes(), sys::getpid());
    (path == copy || link()).then_some(original)
}

/// Writes as `readlink` does.
fn answer(original: &CStr, buffer: *mut u8, size: usize) -> isize {
    let length = original.count_bytes().min(size);
    // SAFETY: the program's buffer, which is of that size.
    unsafe { core::ptr::copy_nonoverlapping(original.as_ptr().cast(), buffer, length) };
    length as isize
}

/// The path that a system call is to go on with; none for no string.
///
/// # Safety
/// The pointer must be a string's, or 0.
pub(crate) unsafe fn meant_or<'p>(path: *const i8) -> Option<&'p CStr> {
    // SAFETY: the caller's.
    meant(path).or_else(|| (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) }))
}

/// `readlink`, as a system call. None where it is not the program's own file that is asked for.
///
/// # Safety
/// The arguments must be what the call takes.
pub(crate) unsafe fn read_link(path: usize, buffer: usize, size: usize) -> Option<isize> {
    meant(path as *const i8).filter(|_| size > 0).map(|original| answer(original, buffer as *mut u8, size))
}

/// # Safety
/// As libc's: the pointers are the program's.
#[cfg_attr(freestanding, unsafe(no_mangle))]
unsafe extern "C" fn readlink(path: *const i8, buffer: *mut u8, size: usize) -> isize {
    match meant(path) {
        Some(original) if size > 0 => answer(original, buffer, size),
        _ => call_next!(c"readlink" as fn(*const i8, *mut u8, usize) -> isize, (path, buffer, size),
            else fail(ENOSYS) as isize),
    }
}

/// # Safety
/// As libc's: the pointers are the program's.
#[cfg_attr(freestanding, unsafe(no_mangle))]
unsafe extern "C" fn readlinkat(directory: i32, path: *const i8, buffer: *mut u8, size: usize) -> isize {
    match meant(path) {
        Some(original) if size > 0 => answer(original, buffer, size),
        _ => call_next!(c"readlinkat" as fn(i32, *const i8, *mut u8, usize) -> isize,
            (directory, path, buffer, size), else fail(ENOSYS) as isize),
    }
}

/// # Safety
/// As libc's: the pointers are the program's.
#[cfg_attr(freestanding, unsafe(no_mangle))]
unsafe extern "C" fn __readlink_chk(path: *const i8, buffer: *mut u8, size: usize, most: usize) -> isize {
    match meant(path) {
        Some(original) if (1..=most).contains(&size) => answer(original, buffer, size),
        _ => call_next!(c"__readlink_chk" as fn(*const i8, *mut u8, usize, usize) -> isize,
            (path, buffer, size, most), else fail(ENOSYS) as isize),
    }
}

/// # Safety
/// As libc's: the pointers are the program's.
#[cfg_attr(freestanding, unsafe(no_mangle))]
unsafe extern "C" fn __readlinkat_chk(
    directory: i32,
    path: *const i8,
    buffer: *mut u8,
    size: usize,
    most: usize,
) -> isize {
    match meant(path) {
        Some(original) if (1..=most).contains(&size) => answer(original, buffer, size),
        _ => call_next!(c"__readlinkat_chk" as fn(i32, *const i8, *mut u8, usize, usize) -> isize,
            (directory, path, buffer, size, most), else fail(ENOSYS) as isize),
    }
}

/// The path to go on with, and libc's function.
fn go_on(path: *const i8, next: &Next) -> RegisterPair {
    RegisterPair { start: meant(path).map_or(path, CStr::as_ptr) as u64, argument: next.address() as u64 }
}

/// Functions whose path is in this register: some take arguments without end, so all are passed as
/// they came.
macro_rules! by_path {
    ($register:literal: $($name:ident = $text:literal,)*) => {{
        $(
            mod $name {
                use super::{Next, RegisterPair, go_on};
                pub(super) static NEXT: Next = Next::new($text);
                extern "C" fn prepare(path: *const i8) -> RegisterPair {
                    go_on(path, &NEXT)
                }
                #[cfg(freestanding)]
                #[unsafe(naked)]
                #[unsafe(no_mangle)]
                extern "C" fn $name() -> i32 {
                    core::arch::naked_asm!(
                        "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
                        concat!("mov rdi, ", $register),
                        "call {prepare}",
                        "mov r10, rax", "mov r11, rdx",
                        "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                        concat!("mov ", $register, ", r10"),
                        "test r11, r11",
                        "jz 2f",
                        "jmp r11",
                        "2: or eax, -1",
                        "ret",
                        prepare = sym prepare,
                    )
                }
            }
        )*
        [$(&$name::NEXT),*]
    }};
}

/// Finds libc's functions: a child of a program with threads may execute another, and must not wait
/// for the loader's lock then.
pub(crate) fn look_up() {
    let first = by_path!("rdi":
        execve = c"execve",
        execv = c"execv",
        execvp = c"execvp",
        execvpe = c"execvpe",
        execl = c"execl",
        execlp = c"execlp",
        execle = c"execle",
    );
    let second = by_path!("rsi": posix_spawn = c"posix_spawn", posix_spawnp = c"posix_spawnp",);
    // Not every libc has these.
    let _ = by_path!("rdi":
        realpath = c"realpath",
        __realpath_chk = c"__realpath_chk",
        canonicalize_file_name = c"canonicalize_file_name",
    );
    for next in first.into_iter().chain(second) {
        next.address();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_links_are_told_from_others() {
        for own in ["/proc/self/exe", "/proc/thread-self/exe", "/proc/123/exe"] {
            assert!(is_own_link(own.as_bytes(), 123), "{own}");
        }
        for other in [
            "/proc/12/exe",
            "/proc//exe",
            "/proc/exe",
            "/proc/self/exe/",
            "/proc/self/fd/1",
            "/proc/99999999999/exe",
            "/usr/exe",
        ] {
            assert!(!is_own_link(other.as_bytes(), 123), "{other}");
        }
    }

    #[test]
    fn links_are_cut_as_readlink_cuts_them() {
        let mut buffer = [b'-'; 8];
        assert_eq!(answer(c"/usr/bin/p", buffer.as_mut_ptr(), 6), 6);
        assert_eq!(&buffer, b"/usr/b--");
        assert_eq!(answer(c"/a", buffer.as_mut_ptr(), 8), 2);
        assert_eq!(&buffer, b"/asr/b--");
    }
}
