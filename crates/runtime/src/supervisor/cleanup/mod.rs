//! The memory of a scavenger that is gone is unmapped once nothing can need it any more.
//!
//! That is: its process has ended, or executed another program; all its areas are given back, so
//! that no context of it is in a ring or on its way; and for a while there was no process in this
//! address space that may be a child of it, which would share its memory until it executes
//! something ([`vfork_children`]). Only what is known for certain to be the scavenger's is
//! unmapped, see [`crate::mappings`].

mod vfork_children;

use crate::layout::area::kind;
use crate::layout::page;
use crate::mappings::ScavengerMappings;
use crate::mappings::maps;
use crate::mappings::spans::FileSpans;
use crate::supervisor::Supervisor;
use crate::supervisor::figures::{
    SEARCH_EVERY_MOST_NS, SEARCH_EVERY_NS, SEARCHES, UNMAP_LEAST, UNMAP_PIECES, UNMAP_ROUND_NS,
};
use crate::sys;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use runtime_abi::control::SCAVENGERS;

/// An address behind all others.
const END: usize = usize::MAX;

#[derive(Clone, Copy, PartialEq, Eq)]
enum CleanupStep {
    /// It lives, as far as is known.
    Lives,
    /// It is gone; `without` searches for vfork children found none.
    Left { search_at: u64, pause: u64, without: u32 },
    /// It is unmapped piece by piece. What lies below `from` has been; other mappings may lie there
    /// by now, so it is not asked for again.
    Unmapped { from: usize },
    /// Nothing more can be done, or known.
    Done,
}

pub(crate) struct Cleanup {
    steps: [CleanupStep; SCAVENGERS],
    /// Of one scavenger at a time.
    pieces: [(usize, usize); UNMAP_PIECES],
    known: usize,
    at_once: usize,
}

impl Cleanup {
    pub(crate) const NONE: Self = Self {
        steps: [CleanupStep::Lives; SCAVENGERS],
        pieces: [(0, 0); UNMAP_PIECES],
        known: 0,
        at_once: UNMAP_LEAST,
    };
}

impl Supervisor {
    /// A step further with each scavenger.
    pub(crate) fn clean_up(&mut self) {
        let mut is_open = true;
        for index in 0..page::rows(self.page).len() {
            let step = self.cleanup.steps[index];
            let next = match step {
                CleanupStep::Lives if self.has_left_all(index) => CleanupStep::Left {
                    search_at: self.now + SEARCH_EVERY_NS,
                    pause: SEARCH_EVERY_NS,
                    without: 0,
                },
                CleanupStep::Left { search_at, pause, without } if search_at <= self.now => {
                    self.search(index, pause, without)
                }
                // One scavenger after the other, since the pieces are of one.
                CleanupStep::Unmapped { from } if core::mem::take(&mut is_open) => self.unmap(index, from),
                other => other,
            };
            if let CleanupStep::Left { search_at, .. } = next {
                self.wake_at = self.wake_at.min(search_at);
            }
            self.moved |= matches!(next, CleanupStep::Unmapped { .. });
            self.cleanup.steps[index] = next;
        }
    }

    fn mappings(&self, index: usize) -> &'static ScavengerMappings {
        &self.region.scavenger_mappings[index]
    }

    /// Its process is gone from this address space for certain, and none of its contexts is in a
    /// ring.
    fn has_left_all(&self, index: usize) -> bool {
        let gone = self.processes.left(index) || self.processes.ended_for_certain(index);
        let is_its = |slot: usize| {
            let area = self.region.area(slot);
            !area.is_primarys()
                && area.row.load(Relaxed) as usize == index
                && area.kind.load(Acquire) != kind::FREE
        };
        gone && !(0..self.region.slots()).any(is_its)
    }

    fn search(&self, index: usize, pause: u64, without: u32) -> CleanupStep {
        if !self.mappings(index).are_marked() {
            return CleanupStep::Done;
        }
        let rows = page::rows(self.page);
        let pid = |index: usize| rows[index].pid.load(Relaxed);
        let lives = |index: &usize| !self.processes.ended(*index) && !self.processes.left(*index);
        let primary = self.region.primary.load(Relaxed);
        let here =
            |other: i32| other == primary || (0..rows.len()).filter(lives).any(|index| pid(index) == other);
        let none = vfork_children::are_none(self.region.supervisor.load(Relaxed), here);
        let without = if none { without + 1 } else { 0 };
        if without == SEARCHES {
            self.forget_twins(index);
            return CleanupStep::Unmapped { from: 0 };
        }
        let pause = if none { SEARCH_EVERY_NS } else { (2 * pause).min(SEARCH_EVERY_MOST_NS) };
        CleanupStep::Left { search_at: self.now + pause, pause, without }
    }

    /// No guest finds its twins any more: something else may be mapped there soon.
    fn forget_twins(&self, index: usize) {
        for row in page::modules_of(self.page, &page::rows(self.page)[index]) {
            if row.found.load(Acquire) != 0 {
                self.region.remove_twins(row, row.bias.load(Relaxed));
            }
        }
    }

    /// Some of what it had.
    fn unmap(&mut self, index: usize, mut from: usize) -> CleanupStep {
        if self.cleanup.known == 0 && from != END {
            from = self.find(index, from);
        }
        if self.cleanup.known == 0 {
            self.unmap_the_list(index);
            return CleanupStep::Done;
        }
        let begin = sys::now_ns();
        let mut before = begin;
        while self.cleanup.known > 0 && before - begin < UNMAP_ROUND_NS {
            let piece = &mut self.cleanup.pieces[self.cleanup.known - 1];
            let size = (piece.1 - piece.0).min(self.cleanup.at_once);
            // SAFETY: the scavenger's, by the kernel's own word or as it mapped it, and no process
            // is left that knows of it.
            let result = unsafe { sys::munmap(piece.0, size) };
            // Sealed memory stays.
            piece.0 = if result < 0 { piece.1 } else { piece.0 + size };
            if piece.0 == piece.1 {
                self.cleanup.known -= 1;
            }
            let now = sys::now_ns();
            self.cleanup.at_once = match now - before {
                quick if quick < UNMAP_ROUND_NS / 8 => self.cleanup.at_once.saturating_mul(2),
                slow if slow > UNMAP_ROUND_NS / 2 => (self.cleanup.at_once / 2).max(UNMAP_LEAST),
                _ => self.cleanup.at_once,
            };
            before = now;
        }
        CleanupStep::Unmapped { from }
    }

    /// Asks the kernel for pieces, from an address on; returns from where there may be more.
    fn find(&mut self, index: usize, from: usize) -> usize {
        let own = self.mappings(index);
        let seen = own.seen();
        // SAFETY: the scavenger's memory, which is unmapped last.
        let spans = unsafe { own.spans.load(Acquire).as_ref() };
        let list = spans.map_or((0, 0), FileSpans::range);
        let (pieces, known) = (&mut self.cleanup.pieces, &mut self.cleanup.known);
        let mut next = from;
        maps::each(|line| {
            let marked = own.marks(index as u32, line);
            while *known < UNMAP_PIECES - 1 {
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
        if *known < UNMAP_PIECES - 1 { END } else { next }
    }

    fn unmap_the_list(&self, index: usize) {
        let list = self.mappings(index).spans.swap(core::ptr::null_mut(), AcqRel);
        // SAFETY: the scavenger's memory, which no other code has read.
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
