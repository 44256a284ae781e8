//! Memory that the program maps itself, on huge pages: allocators of its own, arenas, tables.
//!
//! A mapping of two megabytes and more begins at a multiple of that, and the kernel is asked for
//! huge pages there. Smaller ones, as python's arenas, are pieces of a larger one that is:
//!
//! ```text
//! |<------------ 32 MiB, asked for huge pages ------------>|
//! | piece | piece | piece |              free              |
//! ```
//!
//! A piece is unmapped and moved as any mapping: the kernel splits what it has to.

use super::layout::{asked, count, done};
use super::page::page;
use crate::next::{self, call_next, next};
use crate::sys::{nr, syscall};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicUsize};

pub(super) const HUGE: usize = 2 << 20;
const POOL: usize = 32 << 20;
const PAGE: usize = 4096;
/// Smaller pieces are buffers, of which huge pages would waste more than they help.
const LEAST: usize = 64 << 10;

const READ_AND_WRITE: i32 = 3;
pub(super) const PRIVATE: i32 = 2;
pub(super) const ANONYMOUS: i32 = 0x20;
const NO_RESERVE: i32 = 0x4000;
const NO_FILE: usize = -1_isize as usize;
const ADVISE_HUGE: usize = 14;

/// Mappings up to this size; 0 for none.
static UP_TO: AtomicUsize = AtomicUsize::new(0);
/// What is left of the pool; reached while the flag is held.
static LEFT: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
static IS_HELD: AtomicBool = AtomicBool::new(false);

pub(super) fn begin(page: &super::layout::Page) {
    UP_TO.store(page[asked::HUGE_UP_TO].load(Relaxed) as usize, Relaxed);
}

/// # Safety
/// As libc's `mmap`.
pub(super) unsafe fn map(at: usize, bytes: usize, access: i32, flags: i32, file: i32, from: isize) -> isize {
    let is_plain = at == 0 && access == READ_AND_WRITE && flags & !NO_RESERVE == PRIVATE | ANONYMOUS;
    if is_plain && bytes >= LEAST && bytes <= UP_TO.load(Relaxed) {
        let rounded = bytes.next_multiple_of(PAGE);
        let found = if rounded < HUGE { piece(rounded) } else { aligned(rounded, flags) };
        if let Some(found) = found {
            counted(rounded);
            return found as isize;
        }
    }
    let otherwise = || {
        const FAILED: isize = -1;
        // SAFETY: the program's. Its `errno` is not set: libc is not ready.
        let done = unsafe {
            syscall(nr::MMAP, [at, bytes, access as usize, flags as usize, file as usize, from as usize])
        };
        done.max(FAILED)
    };
    call_next!(next::MMAP, fn(usize, usize, i32, i32, i32, isize) -> isize,
        (at, bytes, access, flags, file, from), else otherwise())
}

fn counted(bytes: usize) {
    if let Some(page) = page() {
        count(page, done::MAPPED);
        page[done::MAPPED_BYTES].fetch_add(bytes as u64, Relaxed);
    }
}

/// A mapping at a multiple of huge pages; none if the kernel refuses, or gives no such pages.
pub(super) fn aligned(bytes: usize, flags: i32) -> Option<usize> {
    let whole = bytes.checked_add(HUGE)?;
    // SAFETY: a new mapping, wherever the kernel likes.
    let got = unsafe { syscall(nr::MMAP, [0, whole, READ_AND_WRITE as usize, flags as usize, NO_FILE, 0]) };
    let got = usize::try_from(got).ok()?;
    let begin = got.next_multiple_of(HUGE);
    let (before, behind) = (begin - got, got + whole - (begin + bytes));
    // SAFETY: parts of the new mapping that nobody knows of.
    unsafe {
        if before > 0 {
            syscall(nr::MUNMAP, [got, before, 0, 0, 0, 0]);
        }
        if behind > 0 {
            syscall(nr::MUNMAP, [begin + bytes, behind, 0, 0, 0, 0]);
        }
        if syscall(nr::MADVISE, [begin, bytes, ADVISE_HUGE, 0, 0, 0]) != 0 {
            syscall(nr::MUNMAP, [begin, bytes, 0, 0, 0, 0]);
            return None;
        }
    }
    Some(begin)
}

/// A piece of the pool. None while another thread takes one, or a handler interrupts that.
fn piece(bytes: usize) -> Option<usize> {
    if IS_HELD.swap(true, Acquire) {
        return None;
    }
    let [begin, end] = &LEFT;
    if end.load(Relaxed) - begin.load(Relaxed) < bytes {
        if let Some(pool) = aligned(POOL, PRIVATE | ANONYMOUS | NO_RESERVE) {
            begin.store(pool, Relaxed);
            end.store(pool + POOL, Relaxed);
        }
    }
    let at = begin.load(Relaxed);
    let has_room = end.load(Relaxed) - at >= bytes;
    if has_room {
        begin.store(at + bytes, Relaxed);
    }
    IS_HELD.store(false, Release);
    has_room.then_some(at)
}
