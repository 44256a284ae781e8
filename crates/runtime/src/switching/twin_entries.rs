//! Functions whose originals do not begin with a jump to their twins, and where the twins are: a
//! guest that calls one by its address finds it here (`switching::across`).
//!
//! A hash table with a fixed number of probes: what finds no place in it is not known, and guests
//! go home for it. A word that was taken away is [`GONE`], so that others behind it are still
//! found.

use crate::sys;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use runtime_abi::control::EntryRow;

/// Fibonacci hashing: the upper bits of the product are the index.
pub(crate) const HASH: u64 = 0x9e37_79b9_7f4a_7c15;
pub(crate) const INDEX_BITS: u32 = 16;
/// Words looked at behind the first one.
pub(crate) const PROBES: usize = 16;

const WORDS: usize = (1 << INDEX_BITS) + PROBES;
/// No address of an instruction.
const GONE: u64 = 1;

/// By original: its twin.
pub(crate) struct TwinEntries([[AtomicU64; 2]; WORDS]);

pub(crate) fn map() -> Result<&'static TwinEntries, i32> {
    // SAFETY: zero is a value of atomics.
    Ok(unsafe { &sys::zeroed::<TwinEntries>(1)?[0] })
}

impl TwinEntries {
    /// A module's, where its file says they are, and `bias` further. Modules are added one after
    /// the other only within a process, so a place is taken by compare-and-swap.
    pub(crate) fn add(&self, rows: &[EntryRow], bias: u64) {
        for row in rows {
            let [original, twin] = [row.original, row.twin].map(|address| address.wrapping_add(bias));
            let free = |[key, value]: &&[AtomicU64; 2]| {
                let before = key.load(Relaxed);
                // Nobody may find it before the twin is there: so it is GONE until then.
                let is_free = before == 0 || before == GONE && value.load(Relaxed) == 0;
                is_free && key.compare_exchange(before, GONE, Acquire, Relaxed).is_ok() && {
                    value.compare_exchange(0, twin, Acquire, Relaxed).is_ok()
                }
            };
            if let Some([key, _]) = self.probes(original).iter().find(free) {
                key.store(original, Release);
            }
        }
    }

    /// Forgets them: other things may be mapped there.
    pub(crate) fn remove(&self, rows: &[EntryRow], bias: u64) {
        for row in rows {
            let original = row.original.wrapping_add(bias);
            let is_it = |[key, _]: &&[AtomicU64; 2]| key.load(Relaxed) == original;
            if let Some([key, value]) = self.probes(original).iter().find(is_it) {
                key.store(GONE, Relaxed);
                value.store(0, Release);
            }
        }
    }

    fn probes(&self, original: u64) -> &[[AtomicU64; 2]] {
        &self.0[(original.wrapping_mul(HASH) >> (64 - INDEX_BITS)) as usize..][..PROBES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn twin(entries: &TwinEntries, original: u64) -> Option<u64> {
        // As the assembly looks for it.
        for [key, value] in entries.probes(original) {
            match key.load(Acquire) {
                0 => return None,
                key if key == original => return Some(value.load(Relaxed)),
                _ => {}
            }
        }
        None
    }

    #[test]
    fn entries_are_found_while_their_file_is_there() {
        let entries = map().expect("memory");
        let rows: Vec<EntryRow> =
            (1..2000).map(|n| EntryRow { original: 16 * n, twin: 0x10_0000 + 64 * n }).collect();
        let other: Vec<EntryRow> = rows.iter().map(|row| EntryRow { ..*row }).collect();
        let (bias, further) = (0x7fff_0000_0000, 0x7ffe_0000_0000);
        entries.add(&rows, bias);
        entries.add(&other, further);
        let found = |bias: u64| {
            rows.iter().filter(|row| twin(entries, row.original + bias) == Some(row.twin + bias)).count()
        };
        assert_eq!([found(bias), found(further)], [rows.len(); 2]);
        assert_eq!(twin(entries, bias + 8), None);
        entries.remove(&rows, bias);
        assert_eq!([found(bias), found(further)], [0, rows.len()]);
        entries.add(&rows, bias);
        assert_eq!([found(bias), found(further)], [rows.len(); 2]);
    }
}
