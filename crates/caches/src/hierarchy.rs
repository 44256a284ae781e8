//! An access on its way through L1, L2, the last levels and memory.

use crate::LINE;
use crate::geometry::{Geometry, Last, Replacement};
use crate::pages::Pages;
use crate::set::{Replaced, Sets};
use crate::streams::Streams;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
    /// It writes whole lines, which are not fetched before: string instructions do so.
    WriteWhole,
    /// It writes past the caches.
    WritePast,
}

/// What serves an access; of one that spans lines, the slowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Served {
    L1,
    L2,
    L3,
    Memory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub served: Served,
    /// A prefetcher would have seen it coming.
    pub is_expected: bool,
    /// Its translation took a walk of the page tables.
    pub walks: bool,
}

/// Bytes between a last level and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub read: u64,
    pub written: u64,
}

impl Traffic {
    /// What came since an earlier time.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self { read: self.read - before.read, written: self.written - before.written }
    }
}

struct Core {
    l1: Sets,
    l2: Sets,
    pages: Pages,
    streams: Streams,
}

struct LastLevel {
    sets: Sets,
    is_victim: bool,
    traffic: Traffic,
}

pub struct Hierarchy {
    cores: Vec<Core>,
    last: Vec<LastLevel>,
}

impl Hierarchy {
    /// Caches for some cores, all of them empty.
    pub fn new(geometry: &Geometry, cores: usize) -> Self {
        let lru = Replacement::LeastRecentlyUsed;
        let core = |_| Core {
            l1: Sets::new(geometry.l1, lru),
            l2: Sets::new(geometry.l2, lru),
            pages: Pages::new(&geometry.buffers),
            streams: Streams::new(),
        };
        let last = |last: &Last| LastLevel {
            sets: Sets::new(last.cache, last.replacement),
            is_victim: last.is_victim,
            traffic: Traffic::default(),
        };
        Self { cores: (0..cores.max(1)).map(core).collect(), last: geometry.l3.iter().map(last).collect() }
    }

    pub fn cores(&self) -> usize {
        self.cores.len()
    }

    /// By the last levels, in their order. What was written and not replaced yet is not in it.
    pub fn traffic(&self) -> Vec<Traffic> {
        self.last.iter().map(|last| last.traffic).collect()
    }

    /// An access to some bytes.
    #[inline]
    pub fn access(&mut self, core: usize, address: u64, bytes: u64, access: Access) -> Outcome {
        let (first, last) = (address / LINE, address.wrapping_add(bytes.max(1) - 1) / LINE);
        let walks = self.cores[core].pages.walks(address);
        if access == Access::WritePast {
            for line in first..=last.max(first) {
                self.write_past(core, line);
            }
            for level in &mut self.last {
                level.traffic.written += bytes;
            }
            return Outcome { served: Served::Memory, is_expected: true, walks };
        }
        let mut outcome = self.line(core, first, access);
        for line in first + 1..=last.max(first) {
            let other = self.line(core, line, access);
            if other.served >= outcome.served {
                outcome = other;
            }
        }
        Outcome { walks, ..outcome }
    }

    #[inline]
    fn line(&mut self, core: usize, line: u64, access: Access) -> Outcome {
        let writes = access != Access::Read;
        if self.cores[core].l1.touch(line, writes) {
            return Outcome { served: Served::L1, is_expected: false, walks: false };
        }
        self.beyond_l1(core, line, access)
    }

    fn beyond_l1(&mut self, core: usize, line: u64, access: Access) -> Outcome {
        let writes = access != Access::Read;
        let Core { l1, l2, streams, .. } = &mut self.cores[core];
        let is_expected = streams.expected(line);
        let served = if l2.touch(line, false) {
            Served::L2
        } else {
            let (mut served, mut is_dirty) = (Served::L3, false);
            for (nth, level) in self.last.iter_mut().enumerate() {
                let found = level.fetch(line, access != Access::WriteWhole);
                if nth == 0 {
                    served = if found.is_some() { Served::L3 } else { Served::Memory };
                    is_dirty = found == Some(true);
                } else if found == Some(true) && !is_dirty {
                    // The first one has written it back already, so L2 would forget that it has to.
                    level.traffic.written += LINE;
                }
            }
            if let Some(replaced) = l2.insert(line, is_dirty) {
                self.last.iter_mut().for_each(|level| level.replaced(replaced));
            }
            served
        };
        if let Some(replaced) = l1.insert(line, writes).filter(|replaced| replaced.is_dirty) {
            if !l2.touch(replaced.line, true) {
                if let Some(next) = l2.insert(replaced.line, true) {
                    self.last.iter_mut().for_each(|level| level.replaced(next));
                }
            }
        }
        Outcome { served, is_expected, walks: false }
    }

    /// What goes past the caches takes the line out of them.
    fn write_past(&mut self, core: usize, line: u64) {
        let Core { l1, l2, .. } = &mut self.cores[core];
        let was_dirty = [l1.remove(line), l2.remove(line)].contains(&Some(true));
        for level in &mut self.last {
            let is_dirty = level.sets.remove(line) == Some(true);
            if was_dirty || is_dirty {
                level.traffic.written += LINE;
            }
        }
    }
}

impl LastLevel {
    /// A line that L2 lacks; whether it was here and written to.
    fn fetch(&mut self, line: u64, reads: bool) -> Option<bool> {
        if self.is_victim {
            let found = self.sets.remove(line);
            if found.is_none() && reads {
                self.traffic.read += LINE;
            }
            return found;
        }
        if self.sets.touch(line, false) {
            return Some(false);
        }
        if reads {
            self.traffic.read += LINE;
        }
        self.insert(line, false);
        None
    }

    /// A line that L2 replaced.
    fn replaced(&mut self, replaced: Replaced) {
        if self.sets.touch(replaced.line, replaced.is_dirty) {
            return;
        }
        if self.is_victim || replaced.is_dirty {
            self.insert(replaced.line, replaced.is_dirty);
        }
    }

    fn insert(&mut self, line: u64, is_dirty: bool) {
        if self.sets.insert(line, is_dirty).is_some_and(|out| out.is_dirty) {
            self.traffic.written += LINE;
        }
    }
}
