//! What a scavenger leaves behind: its memory is unmapped once nobody can need it any more.
//!
//! That is: its process has ended, or is another program; all its areas are given back, so that no context of it is in a ring or on its
//! way; and for a while nobody else was in this address space that may be a child of it, which shares its memory until it executes
//! something ([`vfork_children`]). Only what is known for certain goes, see [`crate::mappings`].

mod vfork_children;

use crate::layout::area::kind;
use crate::layout::page;
use crate::mappings::Belongings;
use crate::mappings::maps;
use crate::mappings::spans::Spans;
use crate::supervisor::Supervisor;
use crate::sys;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use runtime_abi::control::SCAVENGERS;

/// Between two looks for strays, of which two must have found none; it grows while there are some.
const PAUSE: u64 = 100_000_000;
const LONGEST_PAUSE: u64 = 5_000_000_000;
/// For so long it is unmapped in a round: meanwhile the supervisor does nothing else. And so much in one call, in which nobody else can map
/// anything: as much as takes about a quarter of that.
const ROUND: u64 = 1_000_000;
const LEAST: usize = 1 << 20;
/// Pieces that are known at a time.
const PIECES: usize = 64;
/// There is nothing behind that.
const ALL: usize = usize::MAX;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// It lives, as far as is known.
    Lives,
    /// It has left; looks for strays, of which so many have found none.
    Left { look_at: u64, pause: u64, without: u32 },
    /// Is unmapped, piece by piece. What lies below has been: that may be anybody's by now, and is not asked for again.
    Unmapped { from: usize },
    /// There is nothing more to be done, or to be known.
    Done,
}

pub(crate) struct Estates {
    steps: [Step; SCAVENGERS],
    /// Of one scavenger at a time.
    pieces: [(usize, usize); PIECES],
    known: usize,
    at_once: usize,
}

impl Estates {
    pub(crate) const NONE: Self =
        Self { steps: [Step::Lives; SCAVENGERS], pieces: [(0, 0); PIECES], known: 0, at_once: LEAST };
}

impl Supervisor {
    /// A step further with each.
    pub(crate) fn settle_estates(&mut self) {
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
                Step::Unmapped { from } if core::mem::take(&mut is_open) => self.unmap(index, from),
                other => other,
            };
            if let Step::Left { look_at, .. } = next {
                self.wake_at = self.wake_at.min(look_at);
            }
            self.moved |= matches!(next, Step::Unmapped { .. });
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
        let none = vfork_children::are_none(self.region.supervisor.load(Relaxed), here);
        let without = if none { without + 1 } else { 0 };
        if without == ENOUGH {
            return Step::Unmapped { from: 0 };
        }
        let pause = if none { PAUSE } else { (2 * pause).min(LONGEST_PAUSE) };
        Step::Left { look_at: self.now + pause, pause, without }
    }

    /// Some of what it had.
    fn unmap(&mut self, index: usize, mut from: usize) -> Step {
        if self.estates.known == 0 && from != ALL {
            from = self.find(index, from);
        }
        if self.estates.known == 0 {
            self.unmap_the_list(index);
            return Step::Done;
        }
        let begin = sys::now_ns();
        let mut before = begin;
        while self.estates.known > 0 && before - begin < ROUND {
            let piece = &mut self.estates.pieces[self.estates.known - 1];
            let size = (piece.1 - piece.0).min(self.estates.at_once);
            // SAFETY: the scavenger's, by the kernel's own word or as it mapped it, and nobody is left who knows of it.
            let result = unsafe { sys::munmap(piece.0, size) };
            // Some memory can be made such that it stays.
            piece.0 = if result < 0 { piece.1 } else { piece.0 + size };
            if piece.0 == piece.1 {
                self.estates.known -= 1;
            }
            let now = sys::now_ns();
            self.estates.at_once = match now - before {
                quick if quick < ROUND / 8 => self.estates.at_once.saturating_mul(2),
                slow if slow > ROUND / 2 => (self.estates.at_once / 2).max(LEAST),
                _ => self.estates.at_once,
            };
            before = now;
        }
        Step::Unmapped { from }
    }

    /// Asks the kernel for pieces, from an address on; returns from where there may be more.
    fn find(&mut self, index: usize, from: usize) -> usize {
        let belongings = self.belongings(index);
        let seen = belongings.seen();
        // SAFETY: the scavenger's memory, which is unmapped last.
        let spans = unsafe { belongings.spans.load(Acquire).as_ref() };
        let list = spans.map_or((0, 0), Spans::range);
        let (pieces, known) = (&mut self.estates.pieces, &mut self.estates.known);
        let mut next = from;
        maps::each(|line| {
            let marked = belongings.marks(index as u32, line);
            while *known < PIECES - 1 {
                let first = line.start.max(next);
                let part = if marked {
                    (first < line.end).then_some((first, line.end))
                } else {
                    spans.and_then(|spans| spans.part(line, first, seen))
                };
                let Some((start, end)) = part else { break };
                next = end;
                for (start, end) in without(list, (start, end)) {
                    if start < end {
                        pieces[*known] = (start, end);
                        *known += 1;
                    }
                }
            }
        });
        if *known < PIECES - 1 { ALL } else { next }
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

/// What is before it and what is behind.
fn without(hole: (usize, usize), (start, end): (usize, usize)) -> [(usize, usize); 2] {
    if hole.0 < start || hole.0 >= end {
        return [(start, end), (end, end)];
    }
    [(start, hole.0), (hole.1.min(end), end)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_left_out() {
        assert_eq!(without((4, 6), (1, 9)), [(1, 4), (6, 9)]);
        assert_eq!(without((4, 6), (4, 9)), [(4, 4), (6, 9)]);
        assert_eq!(without((4, 6), (1, 6)), [(1, 4), (6, 6)]);
        for apart in [(6, 9), (1, 4)] {
            assert_eq!(without((4, 6), apart), [apart, (apart.1, apart.1)]);
        }
        assert_eq!(without((0, 0), (1, 9)), [(1, 9), (9, 9)]);
    }
}
