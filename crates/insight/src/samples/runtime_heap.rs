//! Memory in which a runtime keeps the objects that it allocates itself: no call of `malloc` tells
//! of them.

use std::collections::BTreeMap;
use std::ops::Range;

/// Such memory of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeHeap {
    name: &'static str,
    /// Its parts: where each begins and ends. None touches another one.
    parts: BTreeMap<u64, u64>,
}

/// Parts that are kept of a process: 1 MiB.
const MOST_PARTS: usize = 32 << 10;

impl RuntimeHeap {
    /// One of which no part is known yet.
    pub fn new(name: &'static str) -> Self {
        Self { name, parts: BTreeMap::new() }
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What was once a part stays one: what its objects were is asked later.
    pub fn add(&mut self, part: Range<u64>) {
        let Range { mut start, mut end } = part;
        while let Some((&at, &old)) = self.parts.range(..=end).next_back().filter(|(_, old)| **old >= start) {
            (start, end) = (start.min(at), end.max(old));
            self.parts.remove(&at);
        }
        if start < end && self.parts.len() < MOST_PARTS {
            self.parts.insert(start, end);
        }
    }

    /// Where the part ends that holds an address, if one does.
    pub fn end_of(&self, address: u64) -> Option<u64> {
        let (_, &end) = self.parts.range(..=address).next_back()?;
        (address < end).then_some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_touch_are_one() {
        let mut heap = RuntimeHeap::new("V8 heap");
        for part in [10..20, 40..50, 20..30, 35..60, 5..5, 70..80] {
            heap.add(part);
        }
        assert_eq!(heap.parts, BTreeMap::from([(10, 30), (35, 60), (70, 80)]));
        let ends = [9, 10, 29, 30, 59, 60, 75].map(|address| heap.end_of(address));
        assert_eq!(ends, [None, Some(30), Some(30), None, Some(60), None, Some(80)]);
        heap.add(0..100);
        assert_eq!(heap.parts, BTreeMap::from([(0, 100)]));
    }
}
