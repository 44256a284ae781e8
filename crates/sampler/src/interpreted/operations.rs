//! Which operation of bytecode the code of an eval loop executes.
//!
//! The loop goes from one operation to the next by a table, which has for each where its code
//! begins:
//!
//! ```text
//! lea   rbx,[table]
//! movzx edx,al              the operation, a byte of the bytecode
//! jmp   [rbx+rdx*8]
//! ```
//!
//! So a place in the loop says which operation runs there. The table has no name in most builds:
//! all that the loop's code refers to is looked at, and most words of the table are addresses in
//! that code.

use crate::memory::{self, Read};
use std::collections::BTreeMap;
use std::ops::Range;
use units::Svma;

/// A byte says which one it is.
const OPERATIONS: usize = 256;
const TABLE: usize = 8 * OPERATIONS;
/// Rare ones, and those that there are not, may be outside of the loop's own code, where compilers
/// put what seldom runs: 75 of `CPython` 3.11 as Debian builds it.
const LEAST_INSIDE: usize = OPERATIONS / 2;
/// Code refers to a few hundred places.
const MOST_PLACES: usize = 4096;

/// Some of all operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Operations([u64; 4]);

impl Operations {
    fn add(&mut self, operation: u8) {
        self.0[usize::from(operation / 64)] |= 1 << (operation % 64);
    }

    pub(super) fn holds(self, operation: u8) -> bool {
        self.0[usize::from(operation / 64)] >> (operation % 64) & 1 == 1
    }
}

/// The table of one file, by stated addresses.
#[derive(Debug)]
pub(super) enum Table {
    /// It is at one of these places.
    Sought(Vec<u64>),
    /// Where the code of which operations begins; nothing, if it was at none of them.
    Read(BTreeMap<u64, Operations>),
}

impl Table {
    /// By the code of an eval loop, and where that begins.
    pub(super) fn of(code: &[u8], start: Svma) -> Self {
        let number = |at: usize| Some(i32::from_le_bytes(code.get(at..at + 4)?.try_into().ok()?));
        let referred = |at: usize| match code[at..] {
            // lea register,[rip+distance]
            [0x48 | 0x4c, 0x8d, form, ..] if form & 0xc7 == 0x05 => {
                let behind = start.0.wrapping_add(at as u64 + 7);
                Some(behind.wrapping_add_signed(number(at + 3)?.into()))
            }
            // [register*8+address], of any instruction
            [form, scaled, ..] if form & 0xc7 == 0x04 && scaled & 0xc7 == 0xc5 => {
                u64::try_from(number(at + 2)?).ok()
            }
            _ => None,
        };
        let mut places: Vec<u64> =
            (0..code.len()).filter_map(referred).filter(|place| place.is_multiple_of(8)).collect();
        places.sort_unstable();
        places.dedup();
        places.truncate(MOST_PLACES);
        Self::Sought(places)
    }

    /// The operations that the code at a place executes. The process has everything at `moved`
    /// bytes behind its stated address; `code` is that of the loop.
    pub(super) fn at(
        &mut self,
        at: Svma,
        code: &[Range<u64>],
        moved: u64,
        read: Read<'_>,
    ) -> Option<Operations> {
        if let Self::Sought(places) = self {
            let mut bytes = vec![0; TABLE];
            let mut best: BTreeMap<u64, Operations> = BTreeMap::new();
            let (mut most, mut is_readable) = (LEAST_INSIDE - 1, false);
            for place in places {
                if read(place.wrapping_add(moved), &mut bytes).is_none() {
                    continue;
                }
                is_readable = true;
                let begins = memory::words(&bytes).map(|word| word.wrapping_sub(moved));
                let is_inside = |at: &u64| code.iter().any(|code| code.contains(at));
                let inside = begins.clone().filter(is_inside).count();
                // What lies beside the table has fewer of its words.
                if inside > most {
                    most = inside;
                    best.clear();
                    for (operation, begin) in (0..=u8::MAX).zip(begins) {
                        best.entry(begin).or_default().add(operation);
                    }
                }
            }
            // A process that has ended tells nothing; the next one may.
            if !is_readable {
                return None;
            }
            *self = Self::Read(best);
        }
        let Self::Read(begins) = self else { return None };
        begins.range(..=at.0).next_back().map(|(_, operations)| *operations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: Svma = Svma(0x1000);
    const LOOP: Range<u64> = 0x1000..0x9000;
    const MOVED: u64 = 0x7f00_0000_0000;

    /// Memory with the table at 0x20038: operations 0 and 3 have code of their own, all others the
    /// same; one of them is outside of the loop. In front of it are words of another kind.
    fn memory() -> Vec<u8> {
        let begin = |operation: u64| match operation {
            0 => 0x1100,
            3 => 0x1200,
            9 => 0x500,
            _ => 0x1300,
        };
        let words = (0..7).map(|_| 0x77).chain((0..256).map(|operation| begin(operation) + MOVED));
        words.flat_map(u64::to_le_bytes).chain([0; 64]).collect()
    }

    fn operations(code: &[u8], places: &[u64]) -> Vec<Option<Operations>> {
        let memory = memory();
        let mut read = |at: u64, bytes: &mut [u8]| {
            let from = usize::try_from(at.checked_sub(MOVED + 0x20000)?).ok()?;
            bytes.copy_from_slice(memory.get(from..from + bytes.len())?);
            Some(())
        };
        let mut table = Table::of(code, CODE);
        places.iter().map(|&at| table.at(Svma(at), std::slice::from_ref(&LOOP), MOVED, &mut read)).collect()
    }

    /// `lea rbx,[rip+…]` at the start of the code.
    fn lea(target: u64) -> Vec<u8> {
        let distance = (target - CODE.0 - 7) as u32;
        [&[0x48, 0x8d, 0x1d][..], &distance.to_le_bytes()].concat()
    }

    #[test]
    fn a_place_tells_its_operation() {
        let whole = lea(0x20038);
        let found = operations(&whole, &[0x1050, 0x1100, 0x11ff, 0x1200, 0x1300, 0x1ff0]);
        let holds = |number: usize, operation: u8| found[number].is_some_and(|it| it.holds(operation));
        assert!((0..=255).all(|operation| holds(0, operation) == (operation == 9)), "nothing else is there");
        assert!((0..=255).all(|operation| holds(1, operation) == (operation == 0)));
        assert_eq!(found[1], found[2]);
        assert!((0..=255).all(|operation| holds(3, operation) == (operation == 3)));
        assert!((0..=255).all(|operation| holds(4, operation) != [0, 3, 9].contains(&operation)));
        assert_eq!(found[4], found[5]);
        // Without a distance: `jmp [rax*8+0x20038]`.
        let absolute = [&[0xff, 0x24, 0xc5][..], &0x20038_u32.to_le_bytes()].concat();
        assert_eq!(operations(&absolute, &[0x1200]), [found[3]]);
        for length in 0..absolute.len() {
            assert_eq!(operations(&absolute[..length], &[0x1200]), [None]);
        }
    }

    #[test]
    fn what_lies_beside_the_table_is_not_taken_for_it() {
        let both = [lea(0x20010), lea(0x20038 - 7)].concat();
        assert_eq!(operations(&both, &[0x1200]), operations(&lea(0x20038), &[0x1200]));
        assert_eq!(operations(&lea(0x20008 + 64 * 8), &[0x1200]), [None], "the end of memory");
        assert_eq!(operations(&lea(0x90000), &[0x1200]), [None]);
    }
}
