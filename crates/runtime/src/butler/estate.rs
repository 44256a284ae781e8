//! What a scavenger leaves behind: its memory is unmapped once nobody can need it any more.
//!
//! That is: its process has ended, or is another program; all its areas are given back, so that no context of it is in a ring or on its
//! way; and for a while nobody else was in this address space that may be a child of it, which shares its memory until it executes
//! something ([`strays`]). Only what is known for certain goes, see [`crate::belongings`].

use super::{Butler, strays};
use crate::area::kind;
use crate::belongings::spans::Spans;
use crate::belongings::{Belongings, maps};
use crate::{page, sys};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use runtime_abi::control::SCAVENGERS;

/// Between two looks for strays, of which two must have found none; it grows while there are some.
const PAUSE: u64 = 100_000_000;
const LONGEST_PAUSE: u64 = 5_000_000_000;
/// So much is unmapped in a round: nobody else can map anything meanwhile.
const AT_ONCE: usize = 16 << 20;
/// Pieces that are known at a time.
const PIECES: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// It lives, as far as is known.
    Lives,
    /// It has left; looks for strays, of which so many have found none.
    Left { look_at: u64, pause: u64, without: u32 },
    /// Is unmapped, piece by piece.
    Unmapped,
    /// There is nothing more to be done, or to be known.
    Done,
}

pub(super) struct Estates {
    steps: [Step; SCAVENGERS],
    /// Of one scavenger at a time.
    pieces: [(usize, usize); PIECES],
    known: usize,
}

impl Estates {
    pub(super) const NONE: Self =
        Self { steps: [Step::Lives; SCAVENGERS], pieces: [(0, 0); PIECES], known: 0 };
}

impl Butler {
    /// A step further with each.
    pub(super) fn settle_estates(&mut self) {
        let mut is_open = true;
        for index in 0..page::rows(self.page).len() {
            let step = self.estates.steps[index];
            let next = match step {
                Step::Lives if self.has_left_all(index) => {
                    Step::Left { look_at: self.now + PAUSE, pause: PAUSE, without: 0 }
                }
                Step::Left { look_at, pause, without } if look_at <= self.now => {
                    self.look(index, pause, without)
                }
                // One after the other, as the pieces are.
                Step::Unmapped if core::mem::take(&mut is_open) => self.unmap(index),
                other => other,
            };
            if let Step::Left { look_at, .. } = next {
                self.wake_at = self.wake_at.min(look_at);
            }
            self.moved |= next == Step::Unmapped;
            self.estates.steps[index] = next;
        }
    }

    fn belongings(&self, index: usize) -> &'static Belongings {
        &self.region.belongings[index]
    }

    /// Its process is gone from this address space for certain, and nothing of it is in a ring.
    fn has_left_all(&self, index: usize) -> bool {
        let gone = self.processes.left(index) || self.processes.ended_for_certain(index);
        let is_its = |slot: usize| {
            let area = self.region.area(slot);
            area.guest.load(Relaxed) == 0
                && area.row.load(Relaxed) as usize == index
                && area.kind.load(Acquire) != kind::FREE
        };
        gone && !(0..self.region.slots()).any(is_its)
    }

    fn look(&self, index: usize, pause: u64, without: u32) -> Step {
        const ENOUGH: u32 = 2;
        if !self.belongings(index).are_marked() {
            return Step::Done;
        }
        let rows = page::rows(self.page);
        let pid = |index: usize| rows[index].pid.load(Relaxed);
        let lives = |index: &usize| !self.processes.ended(*index) && !self.processes.left(*index);
        let primary = self.region.primary.load(Relaxed);
        let here =
            |other: i32| other == primary || (0..rows.len()).filter(lives).any(|index| pid(index) == other);
        let none = strays::are_none(self.region.butler.load(Relaxed), here);
        let without = if none { without + 1 } else { 0 };
        if without == ENOUGH {
            return Step::Unmapped;
        }
        let pause = if none { PAUSE } else { (2 * pause).min(LONGEST_PAUSE) };
        Step::Left { look_at: self.now + pause, pause, without }
    }

    /// Some of what it had.
    fn unmap(&mut self, index: usize) -> Step {
        if self.estates.known == 0 {
            self.find(index);
        }
        if self.estates.known == 0 {
            self.unmap_the_list(index);
            return Step::Done;
        }
        let mut left = AT_ONCE;
        while left > 0 && self.estates.known > 0 {
            let (start, end) = self.estates.pieces[self.estates.known - 1];
            let size = (end - start).min(left);
            // SAFETY: the scavenger's, by the kernel's own word or as it was mapped when it began, and nobody is left who knows of it.
            if unsafe { sys::munmap(start, size) } < 0 {
                return Step::Done;
            }
            left -= size;
            if start + size == end {
                self.estates.known -= 1;
            } else {
                self.estates.pieces[self.estates.known - 1].0 = start + size;
            }
        }
        Step::Unmapped
    }

    /// Asks the kernel for pieces.
    fn find(&mut self, index: usize) {
        let belongings = self.belongings(index);
        // SAFETY: the scavenger's memory, which is unmapped last.
        let spans = unsafe { belongings.spans.load(Acquire).as_ref() };
        let (pieces, known) = (&mut self.estates.pieces, &mut self.estates.known);
        let mut add = |start: usize, end: usize| {
            if *known < PIECES && start < end {
                pieces[*known] = (start, end);
                *known += 1;
            }
        };
        maps::each(|line| {
            if belongings.marks(index as u32, line) {
                let (first, end) = spans.map_or((line.end, line.end), Spans::range);
                if line.holds(first) {
                    add(line.start, first);
                    add(end.min(line.end), line.end);
                } else {
                    add(line.start, line.end);
                }
            } else if let Some((start, end)) = spans.and_then(|spans| spans.part(line)) {
                add(start, end);
            }
        });
    }

    fn unmap_the_list(&self, index: usize) {
        let list = self.belongings(index).spans.swap(core::ptr::null_mut(), AcqRel);
        // SAFETY: the scavenger's memory, which nobody else has read.
        if let Some(list) = unsafe { list.as_ref() } {
            let (start, end) = list.range();
            // SAFETY: as above.
            unsafe { sys::munmap(start, end - start) };
        }
    }
}
