//! Which pages of the address space hold twins that run aboard, and which hold the originals of
//! files with such twins: what a guest calls, or returns to, is looked up here
//! (`switching::across`).
//!
//! One word for each page number modulo 2^20, with the rest of the address: two pages that are a
//! multiple of 4 GiB apart share a word, and the second one is not known, so that guests go home
//! there. Pages are known from the moment in which a file is loaded to that in which its process is
//! cleaned up.

use crate::sys;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Relaxed};
use runtime_abi::control::ModuleRow;

/// What a page is, in a word's two lowest bits.
pub(crate) const TWIN: u32 = 1;
pub(crate) const ORIGINAL: u32 = 2;

const PAGES: usize = 1 << 20;
const PAGE: u64 = 4096;

pub(crate) fn map() -> Result<&'static TwinPages, i32> {
    // SAFETY: zero is a value of atomics.
    Ok(unsafe { &sys::zeroed::<TwinPages>(1)?[0] })
}

pub(crate) struct TwinPages([AtomicU32; PAGES]);

impl TwinPages {
    /// A module's, where its file says they are, and `bias` further.
    pub(crate) fn add(&self, row: &ModuleRow, bias: u64) {
        Self::each(row, bias, |page, word| {
            let _ = self.0[page].compare_exchange(0, word, AcqRel, Relaxed);
        });
    }

    /// Forgets them: other things may be mapped there.
    pub(crate) fn remove(&self, row: &ModuleRow, bias: u64) {
        Self::each(row, bias, |page, word| {
            let _ = self.0[page].compare_exchange(word, 0, AcqRel, Relaxed);
        });
    }

    fn each(row: &ModuleRow, bias: u64, mut to: impl FnMut(usize, u32)) {
        for ([begin, end], kind) in [(row.twins, TWIN), (row.originals, ORIGINAL)] {
            if begin >= end {
                continue;
            }
            let (first, last) = (begin.wrapping_add(bias) / PAGE, (end - 1).wrapping_add(bias) / PAGE);
            for number in first..=last {
                to(number as usize % PAGES, word(number * PAGE, kind));
            }
        }
    }
}

/// What a page's word says, as `switching::across` compares it.
fn word(address: u64, kind: u32) -> u32 {
    ((address >> 32) as u32) << 2 | kind
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

    fn row(twins: [u64; 2], originals: [u64; 2]) -> ModuleRow {
        ModuleRow {
            name: 0,
            original: 0,
            first_switch: 0,
            switches: 0,
            code: [0; 2],
            entry: 0,
            twins,
            originals,
            first_entry: 0,
            entries: 0,
            bias: AtomicU64::new(0),
            found: AtomicU32::new(0),
            reserved: 0,
        }
    }

    fn kind(pages: &TwinPages, address: u64) -> u32 {
        let word = pages.0[(address / PAGE) as usize % PAGES].load(Relaxed);
        if word >> 2 == (address >> 32) as u32 { word & 3 } else { 0 }
    }

    #[test]
    fn pages_are_known_while_their_file_is_there() {
        let pages = map().expect("memory");
        let bias = 0x7fff_1234_5000;
        let one = row([0x9000, 0xa001], [0x1000, 0x2000]);
        pages.add(&one, bias);
        let kinds = [0x8fff, 0x9000, 0xafff, 0xb000, 0x1000, 0x1fff, 0x2000].map(|at| kind(pages, bias + at));
        assert_eq!(kinds, [0, TWIN, TWIN, 0, ORIGINAL, ORIGINAL, 0]);
        // Another file four gigabytes further is not known, and the first one still is.
        let other = row([0x9000, 0xa000], [0, 0]);
        pages.add(&other, bias + (1 << 32));
        assert_eq!([kind(pages, bias + 0x9000), kind(pages, bias + (1 << 32) + 0x9000)], [TWIN, 0]);
        pages.remove(&other, bias + (1 << 32));
        assert_eq!(kind(pages, bias + 0x9000), TWIN);
        pages.remove(&one, bias);
        assert!(pages.0.iter().all(|word| word.load(Relaxed) == 0));
    }
}
