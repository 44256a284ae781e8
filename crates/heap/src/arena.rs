//! Memory for what is allocated before the next `malloc` is known: looking it up may allocate.
//! Nothing of it is given back.

use core::cell::UnsafeCell;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

pub(crate) const BYTES: usize = 64 << 10;
const ALIGNMENT: usize = 16;

#[repr(C, align(16))]
pub(crate) struct Arena {
    memory: UnsafeCell<[u8; BYTES]>,
    used: AtomicUsize,
}

// SAFETY: each piece is given to one caller.
unsafe impl Sync for Arena {}

pub(crate) static ARENA: Arena = Arena { memory: UnsafeCell::new([0; BYTES]), used: AtomicUsize::new(0) };

impl Arena {
    /// Memory of zeros, with its size in the word in front; null if there is no more.
    pub(crate) fn allocate(&self, bytes: usize, alignment: usize) -> *mut u8 {
        let alignment = alignment.max(ALIGNMENT);
        let Some(size) = bytes.checked_add(ALIGNMENT + alignment) else { return core::ptr::null_mut() };
        let size = size.next_multiple_of(ALIGNMENT);
        let taken = self
            .used
            .fetch_update(Relaxed, Relaxed, |used| used.checked_add(size).filter(|&used| used <= BYTES));
        let Ok(from) = taken else { return core::ptr::null_mut() };
        let base = self.memory.get().cast::<u8>();
        let address = (base as usize + from + ALIGNMENT).next_multiple_of(alignment);
        // SAFETY: inside the piece that was just taken, which has space for the size in front.
        unsafe {
            let piece = base.add(address - base as usize);
            piece.sub(ALIGNMENT).cast::<usize>().write(bytes);
            piece
        }
    }

    pub(crate) fn holds(&self, address: usize) -> bool {
        address.wrapping_sub(self.memory.get() as usize) < BYTES
    }

    /// The size of a piece.
    ///
    /// # Safety
    /// `piece` is one that `allocate` returned.
    pub(crate) unsafe fn size(piece: *const u8) -> usize {
        // SAFETY: the word that `allocate` wrote.
        unsafe { piece.sub(ALIGNMENT).cast::<usize>().read() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_apart_and_aligned() {
        static ARENA: Arena = Arena { memory: UnsafeCell::new([0; BYTES]), used: AtomicUsize::new(0) };
        let one = ARENA.allocate(5, 0);
        let two = ARENA.allocate(100, 256);
        assert!(one as usize % 16 == 0 && two as usize % 256 == 0 && two as usize >= one as usize + 5);
        assert!(ARENA.holds(one as usize) && ARENA.holds(two as usize) && !ARENA.holds(0));
        // SAFETY: pieces of this arena.
        unsafe { assert_eq!((Arena::size(one), Arena::size(two)), (5, 100)) };
        assert!(ARENA.allocate(BYTES, 1).is_null() && ARENA.allocate(usize::MAX, 1).is_null());
    }
}
