//! Memory that a process maps itself, by the call that mapped it.
//!
//! Areas are split, replaced and unmapped in parts; what is left of one keeps its site. They may
//! hold allocations: an allocator maps its arenas, too.

use crate::samples::sites::SiteId;
use std::collections::BTreeMap;

/// What is mapped from one address on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub end: u64,
    pub site: SiteId,
    pub began_ns: u64,
    /// Whether it counts as one of its site's: of the parts of a split area only the first does.
    pub counts: bool,
}

/// The areas of one process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Areas(BTreeMap<u64, Area>);

/// Areas that are kept of a process: 2 MiB.
const MOST: usize = 32 << 10;

impl Areas {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Area> {
        self.0.values()
    }

    /// The last area that begins at `address` or before.
    pub(crate) fn before(&self, address: u64) -> Option<(u64, &Area)> {
        self.0.range(..=address).next_back().map(|(start, area)| (*start, area))
    }

    /// Whether there was space.
    pub(crate) fn insert(&mut self, start: u64, area: Area) -> bool {
        let has_room = self.0.len() < MOST && start < area.end;
        if has_room {
            self.0.insert(start, area);
        }
        has_room
    }

    /// Takes a range out of all areas; those of which nothing is left.
    pub(crate) fn cut(&mut self, start: u64, end: u64) -> Vec<Area> {
        let before = self.0.range(..end).rev();
        let overlapped: Vec<(u64, Area)> = before
            .map(|(at, area)| (*at, *area))
            .take_while(|(_, area)| area.end > start)
            .filter(|_| start < end)
            .collect();
        let mut gone = Vec::new();
        for (at, area) in overlapped {
            self.0.remove(&at);
            let (has_left, has_right) = (at < start, area.end > end);
            if has_left {
                self.0.insert(at, Area { end: start, ..area });
            }
            if has_right {
                self.0.insert(end, Area { counts: area.counts && !has_left, ..area });
            }
            if !has_left && !has_right && area.counts {
                gone.push(area);
            }
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(end: u64) -> Area {
        Area { end, site: SiteId(0), began_ns: 1, counts: true }
    }

    #[test]
    fn areas_are_split_and_end() {
        let mut areas = Areas::default();
        assert!(areas.insert(0x1000, area(0x9000)) && !areas.insert(0x9000, area(0x9000)));
        assert!(areas.cut(0x3000, 0x4000).is_empty());
        assert_eq!(areas.before(0x3800).map(|(at, area)| (at, area.end)), Some((0x1000, 0x3000)));
        assert_eq!(areas.before(0x4000).map(|(at, area)| (at, area.counts)), Some((0x4000, false)));
        assert_eq!(areas.cut(0, 0x3000).len(), 1, "the part that counts");
        assert!(areas.cut(0x4000, 0x9000).is_empty() && areas.is_empty());
        assert!(areas.cut(5, 5).is_empty());
    }
}
