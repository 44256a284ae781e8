//! Code on huge pages: what is there when the program begins, where two megabytes of it and more
//! lie together. A copy takes the place of the file's pages in one step:
//!
//! ```text
//! file's pages   |  piece up to 2 MiB  |==== whole multiples of 2 MiB ====|  rest  |
//! copy                                 |==== mapped anew, copied, compared ====|
//!                                                  moved there by mremap
//! ```
//!
//! Nothing of the program runs meanwhile: the loader calls the constructor before any thread is
//! made. What reads the mappings of a process (debuggers, profilers) finds no file's name there.

use super::layout::{Page, asked, count, done};
use super::mappings::{self, Mapping};
use super::pages::{self, HUGE};
use crate::sys::{nr, syscall};
use core::sync::atomic::Ordering::Relaxed;

const READ_AND_EXECUTE: usize = 5;
const MAY_MOVE_TO_PLACE: usize = 3;
/// Files with more of it than this are left out.
const MOST: usize = 32;

/// Moves the code, if that is asked for.
pub(super) fn begin(page: &Page) {
    if page[asked::MOVES_CODE].load(Relaxed) == 0 {
        return;
    }
    // Moving changes what is being read: first all of it is read.
    let mut found = [(0_usize, 0_usize); MOST];
    let mut number = 0;
    let own = begin as *const () as u64;
    mappings::each(&mut |mapping| {
        if let Some(piece) = piece(mapping, own).filter(|_| number < MOST) {
            found[number] = piece;
            number += 1;
        }
    });
    for &(begin, bytes) in &found[..number] {
        if moved(begin, bytes) {
            count(page, done::MOVED);
        }
    }
}

/// The whole huge pages of a mapping of code from a file, but for the library's own.
fn piece(mapping: &Mapping, own: u64) -> Option<(usize, usize)> {
    let is_own = mapping.start <= own && own < mapping.end;
    if !mapping.is_code || mapping.file == super::layout::NO_NAME || is_own {
        return None;
    }
    let begin = (mapping.start as usize).next_multiple_of(HUGE);
    let end = mapping.end as usize / HUGE * HUGE;
    (begin < end).then(|| (begin, end - begin))
}

/// Puts a copy on huge pages in the place of the code.
fn moved(begin: usize, bytes: usize) -> bool {
    let Some(copy) = pages::aligned(bytes, pages::PRIVATE | pages::ANONYMOUS) else { return false };
    // SAFETY: the code can be read, by its mapping; the copy is as large and nobody else's. Both
    // are the same before one takes the other's place.
    let is_there = unsafe {
        core::ptr::copy_nonoverlapping(begin as *const u8, copy as *mut u8, bytes);
        let (code, copied) = (
            core::slice::from_raw_parts(begin as *const u8, bytes),
            core::slice::from_raw_parts(copy as *const u8, bytes),
        );
        code == copied
            && syscall(nr::MPROTECT, [copy, bytes, READ_AND_EXECUTE, 0, 0, 0]) == 0
            && syscall(nr::MREMAP, [copy, bytes, bytes, MAY_MOVE_TO_PLACE, begin, 0]) == begin as isize
    };
    if !is_there {
        // SAFETY: the copy, which nobody knows of.
        unsafe { syscall(nr::MUNMAP, [copy, bytes, 0, 0, 0, 0]) };
    }
    is_there
}
