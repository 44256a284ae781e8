//! Allocations at the sites, aligned and with space up to the next line. All others go on to libc
//! as they are.

use super::layout::{Page, asked, count, done};
use super::mappings;
use super::page::page;
use super::sites::Addresses;
use crate::arena::{ARENA, Arena};
use crate::next::{self, call_next, next};
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

static SITES: Addresses = Addresses::new();
/// What sites get; 0 while there are none.
static ALIGNMENT: AtomicUsize = AtomicUsize::new(0);

/// From now on sites are aligned, if that is asked for.
pub(super) fn begin(page: &Page) {
    let alignment = page[asked::ALIGNMENT].load(Relaxed) as usize;
    if alignment.is_power_of_two() && alignment <= 4096 {
        look(page);
        ALIGNMENT.store(alignment, Relaxed);
    }
}

/// Finds the sites in this process.
fn look(page: &Page) {
    mappings::each(&mut |mapping| SITES.look(page, mapping));
    SITES.looked(page);
}

/// What an allocation of a call is aligned to, if it is to be.
///
/// # Safety
/// `stack` is the caller's stack pointer.
unsafe fn wanted(return_address: u64, stack: u64) -> Option<usize> {
    let alignment = ALIGNMENT.load(Relaxed);
    if alignment == 0 {
        return None;
    }
    if SITES.is_time() {
        page().map(look);
    }
    // SAFETY: the caller's.
    unsafe { SITES.has(return_address, stack) }.then_some(alignment)
}

/// A block of whole lines, if there is one to be had.
fn lines(alignment: usize, size: usize) -> Option<*mut u8> {
    let rounded = size.max(1).checked_next_multiple_of(alignment)?;
    let block = call_next!(next::MEMALIGN, fn(usize, usize) -> *mut u8, (alignment, rounded), else {
        call_next!(next::ALIGNED_ALLOC, fn(usize, usize) -> *mut u8, (alignment, rounded), else {
            core::ptr::null_mut()
        })
    });
    if block.is_null() {
        return None;
    }
    page().inspect(|page| count(page, done::ALIGNED));
    Some(block)
}

/// # Safety
/// As libc's; and `stack` is the caller's stack pointer.
pub(super) unsafe extern "C" fn allocate(size: usize, return_address: u64, stack: u64) -> *mut u8 {
    // SAFETY: the caller's.
    let wanted = unsafe { wanted(return_address, stack) };
    wanted.and_then(|alignment| lines(alignment, size)).unwrap_or_else(
        || call_next!(next::MALLOC, fn(usize) -> *mut u8, (size), else ARENA.allocate(size, 0)),
    )
}

/// # Safety
/// As for [`allocate`].
pub(super) unsafe extern "C" fn allocate_zeroed(
    number: usize,
    size: usize,
    return_address: u64,
    stack: u64,
) -> *mut u8 {
    // SAFETY: the caller's.
    let wanted = unsafe { wanted(return_address, stack) };
    if let Some((alignment, bytes)) = wanted.zip(number.checked_mul(size)) {
        if let Some(block) = lines(alignment, bytes) {
            // SAFETY: the block has this space.
            unsafe { block.write_bytes(0, bytes) };
            return block;
        }
    }
    call_next!(next::CALLOC, fn(usize, usize) -> *mut u8, (number, size), else {
        number.checked_mul(size).map_or(core::ptr::null_mut(), |bytes| ARENA.allocate(bytes, 0))
    })
}

/// # Safety
/// As for [`allocate`].
pub(super) unsafe extern "C" fn reallocate(
    old: *mut u8,
    size: usize,
    return_address: u64,
    stack: u64,
) -> *mut u8 {
    if !old.is_null() && ARENA.holds(old as usize) {
        // SAFETY: the caller's.
        let new = unsafe { allocate(size, return_address, stack) };
        if !new.is_null() {
            // SAFETY: a piece of the arena, and memory that is as large as the smaller of both.
            unsafe { core::ptr::copy_nonoverlapping(old, new, Arena::size(old).min(size)) };
        }
        return new;
    }
    let plain = |size| {
        call_next!(next::REALLOC, fn(*mut u8, usize) -> *mut u8, (old, size), else {
            if old.is_null() { ARENA.allocate(size, 0) } else { core::ptr::null_mut() }
        })
    };
    // A size of zero frees, at libc's choice.
    let wanted = if size == 0 {
        None
    } else {
        // SAFETY: the caller's.
        unsafe { wanted(return_address, stack) }
    };
    let rounded = wanted.and_then(|alignment| Some((alignment, size.checked_next_multiple_of(alignment)?)));
    let Some((alignment, rounded)) = rounded else { return plain(size) };
    let new = plain(rounded);
    if new.is_null() || new as usize % alignment == 0 {
        return new;
    }
    let Some(block) = lines(alignment, rounded) else { return new };
    // SAFETY: both have that space; the old one is ours to end now.
    unsafe { core::ptr::copy_nonoverlapping(new, block, rounded) };
    call_next!(next::FREE, fn(*mut u8) -> (), (new), else ());
    block
}

/// # Safety
/// As libc's.
pub(super) unsafe extern "C" fn end(block: *mut u8) {
    if !block.is_null() && !ARENA.holds(block as usize) {
        call_next!(next::FREE, fn(*mut u8) -> (), (block), else ());
    }
}

/// `memalign` and `aligned_alloc`: what the program asks for, or more.
///
/// # Safety
/// As for [`allocate`].
pub(super) unsafe extern "C" fn allocate_aligned(
    alignment: usize,
    size: usize,
    return_address: u64,
    stack: u64,
) -> *mut u8 {
    // SAFETY: the caller's.
    let wanted = unsafe { wanted(return_address, stack) }.filter(|_| alignment.is_power_of_two());
    wanted.and_then(|wanted| lines(wanted.max(alignment), size)).unwrap_or_else(|| {
        call_next!(next::MEMALIGN, fn(usize, usize) -> *mut u8, (alignment, size), else {
            call_next!(next::ALIGNED_ALLOC, fn(usize, usize) -> *mut u8, (alignment, size), else {
                ARENA.allocate(size, alignment)
            })
        })
    })
}

/// # Safety
/// As for [`allocate`].
pub(super) unsafe extern "C" fn allocate_aligned_into(
    to: *mut *mut u8,
    alignment: usize,
    size: usize,
    return_address: u64,
    stack: u64,
) -> i32 {
    const ENOMEM: i32 = 12;
    let is_good = alignment.is_power_of_two() && alignment >= size_of::<usize>();
    // SAFETY: the caller's.
    let wanted = unsafe { wanted(return_address, stack) }.filter(|_| is_good);
    if let Some(block) = wanted.and_then(|wanted| lines(wanted.max(alignment), size)) {
        // SAFETY: the program's pointer.
        unsafe { *to = block };
        return 0;
    }
    call_next!(next::POSIX_MEMALIGN, fn(*mut *mut u8, usize, usize) -> i32,
        (to, alignment, size), else ENOMEM)
}
