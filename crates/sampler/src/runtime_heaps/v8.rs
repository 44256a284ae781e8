//! The heap of V8.
//!
//! It is made of pages that begin at multiples of 256 KiB; an object that is larger has a page of
//! its own. V8 exports nothing that tells where they are, but each page begins with words that
//! describe it, and two of these say from where to where its objects lie:
//!
//! ```text
//! size | flags | heap | objects' begin | objects' end | …
//! ```
//!
//! From version 12 on the page begins with flags and the address of such words, which lie
//! elsewhere. Two addresses in that page, in that order, make chance unlikely: other memory that
//! begins at such a place has no reason to hold them there.

use crate::memory::{self, Read};
use crate::target::own_memory_of;
use insight::samples::RuntimeHeap;

const PAGE: u64 = 256 << 10;
/// What describes a page takes no more of it.
const MOST_HEAD: u64 = 64 << 10;
/// Where in a page's first words its objects' begin is.
const BEGIN: usize = 3;
/// Words that are read of a page, or of what describes it.
const WORDS: usize = 16;
/// Places that are looked at each time: of 16 GiB.
const MOST_PLACES: usize = 64 << 10;

/// Adds what the heap of a process has by now.
pub(super) fn look(process: u32, heap: &mut RuntimeHeap, read: Read<'_>) {
    let own = own_memory_of(process).unwrap_or_default();
    let mut places = 0;
    for memory in own {
        let Some(mut at) = memory.start.checked_next_multiple_of(PAGE) else { continue };
        while at < memory.end && places < MOST_PLACES {
            if heap.end_of(at).is_none() {
                places += 1;
                if let Some(end) = page(at, memory.end, read) {
                    heap.add(at..end);
                }
            }
            let behind = heap.end_of(at).unwrap_or(at + 1);
            let Some(next) = behind.checked_next_multiple_of(PAGE) else { break };
            at = next;
        }
    }
}

/// Where the page ends that begins at an address, if one does, in memory that ends there.
fn page(start: u64, end: u64, read: Read<'_>) -> Option<u64> {
    let mut bytes = [0; 8 * WORDS];
    read(start, &mut bytes)?;
    let first: Vec<u64> = memory::words(&bytes).collect();
    objects(&first[BEGIN..BEGIN + 2], start, end).or_else(|| {
        let described = Some(first[1]).filter(|at| at.is_multiple_of(8) && !(start..end).contains(at))?;
        read(described, &mut bytes)?;
        let words: Vec<u64> = memory::words(&bytes).collect();
        words.windows(2).find_map(|words| objects(words, start, end))
    })
}

/// The end of a page's objects, if these words are their begin and end.
fn objects(words: &[u64], start: u64, end: u64) -> Option<u64> {
    let &[from, to] = words else { return None };
    let is_begin = from > start && from <= start + MOST_HEAD && from.is_multiple_of(8);
    (is_begin && to > from && to <= end && to.is_multiple_of(8)).then_some(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0x1234_0000_0000;
    const DESCRIBED: u64 = 0x5555_0000_1000;

    /// Where a page ends that begins with these words, if what they refer to is `described`.
    fn end(first: &[u64], described: &[u64]) -> Option<u64> {
        let mut read = |address: u64, bytes: &mut [u8]| {
            let words = match address {
                START => first,
                DESCRIBED => described,
                _ => return None,
            };
            bytes.fill(0);
            for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            Some(())
        };
        page(START, START + 4 * PAGE, &mut read)
    }

    #[test]
    fn pages_say_where_their_objects_lie() {
        let (from, to) = (START + 0x1118, START + PAGE);
        assert_eq!(end(&[PAGE, 0x18, 0x5555_0000_0000, from, to], &[]), Some(to));
        let large = START + 3 * PAGE + 0x40;
        assert_eq!(end(&[4 * PAGE, 0x18, 0x5555_0000_0000, from, large], &[]), Some(large));
        // Described elsewhere.
        assert_eq!(end(&[0x18, DESCRIBED], &[DESCRIBED, PAGE, 9, from, to, 7]), Some(to));
        assert_eq!(end(&[0x18, DESCRIBED], &[PAGE, 9, to, from, 7]), None);
        assert_eq!(end(&[0x18, DESCRIBED + 8], &[from, to]), None, "that is not there");
        // Arrays of addresses, of numbers, an arena of malloc, a page that was never written.
        for other in [
            &[from, to, from, to, from][..],
            &[1, 2, 3, 4, 5],
            &[START + 0x20, 0, 0x21000, 0x21000, 0],
            &[0, 0, 0, START, to],
            &[0, 0, 0, from, START + 5 * PAGE],
            &[0, 0, 0, START + MOST_HEAD + 8, to],
            &[u64::MAX, u64::MAX, u64::MAX, u64::MAX, u64::MAX],
            &[],
        ] {
            assert_eq!(end(other, &[from, to]), None, "{other:x?}");
        }
    }
}
