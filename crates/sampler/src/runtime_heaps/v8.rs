//! The heap of V8.
//!
//! It is made of pages that begin at multiples of 256 KiB; an object that is larger has a page of
//! its own. V8 exports nothing that tells where they are, but each page begins with words that
//! describe it. They hold addresses in that page, in their order, or lead to its own address and
//! size: other memory that begins at such a place has no reason to.
//!
//! ```text
//! up to 11  size | flags | heap | objects' begin | objects' end | …
//! 12        flags | itself | size | heap | objects' begin | objects' end | …
//! from 13   flags | description → … | page | size | …
//! ```
//!
//! It is tried with 10.2, 11.3, 12.4 and 13.6: Node.js 18, 20, 22 and 24.

use crate::memory::{self, Read};
use crate::target::own_memory_of;
use insight::samples::RuntimeHeap;

const PAGE: u64 = 256 << 10;
/// What describes a page takes no more of it.
const MOST_HEAD: u64 = 64 << 10;
/// Sizes of pages are multiples of this.
const SMALLEST: u64 = 4 << 10;
/// Words that are read of a page, or of what describes it.
const WORDS: usize = 6;
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
    let mut words = |at: u64| {
        let mut bytes = [0; 8 * WORDS];
        read(at, &mut bytes)?;
        let mut words = [0; WORDS];
        words.iter_mut().zip(memory::words(&bytes)).for_each(|(word, read)| *word = read);
        Some(words)
    };
    let objects_end = |from: u64, to: u64| {
        let is_begin = from > start && from <= start + MOST_HEAD && from.is_multiple_of(8);
        (is_begin && to > from && to <= end && to.is_multiple_of(8)).then_some(to)
    };
    let first = words(start)?;
    if let Some(to) = objects_end(first[3], first[4]).filter(|to| to - start <= first[0]) {
        return Some(to);
    }
    if first[1] == start {
        return objects_end(first[4], first[5]);
    }
    let described = words(Some(first[1]).filter(|at| *at > 0 && at.is_multiple_of(8))?)?;
    let to = start.checked_add(described[2])?;
    (described[1] == start && to > start && to <= end && to.is_multiple_of(SMALLEST)).then_some(to)
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
        let (from, to, heap) = (START + 0x1118, START + PAGE, 0x5555_0000_0000);
        assert_eq!(end(&[PAGE, 0x18, heap, from, to, 0], &[]), Some(to));
        let large = START + 3 * PAGE + 0x40;
        assert_eq!(end(&[4 * PAGE, 0x18, heap, from, large], &[]), Some(large));
        assert_eq!(end(&[PAGE, 0x18, heap, from, large], &[]), None, "it is not as large");
        assert_eq!(end(&[4, START, PAGE, heap, from, to], &[]), Some(to));
        // Described elsewhere.
        assert_eq!(end(&[0x12, DESCRIBED], &[9, START, 2 * PAGE, 0x3fff0]), Some(START + 2 * PAGE));
        for described in [[9, START + PAGE, PAGE], [9, START, 0], [9, START, 5 * PAGE], [9, START, u64::MAX]]
        {
            assert_eq!(end(&[0x12, DESCRIBED], &described), None, "{described:x?}");
        }
        assert_eq!(end(&[0x12, DESCRIBED + 8], &[9, START, PAGE]), None, "that is not there");
        // Arrays of addresses, of numbers, an arena of malloc, a page that was never written.
        for other in [
            &[from, to, from, to, from, to][..],
            &[1, 2, 3, 4, 5, 6],
            &[START + 0x20, 0, 0x21000, 0x21000, 0x1000, from],
            &[PAGE, 0, 0, START, to, 0],
            &[5 * PAGE, 0, 0, from, START + 5 * PAGE, 0],
            &[PAGE, 0, 0, START + MOST_HEAD + 8, to, 0],
            &[u64::MAX; 6],
            &[],
        ] {
            assert_eq!(end(other, &[from, to, PAGE]), None, "{other:x?}");
        }
    }
}
