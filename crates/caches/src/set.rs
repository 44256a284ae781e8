//! One cache: sets of lines, the most recently used first.

use crate::LINE;
use crate::geometry::{Cache, Replacement};
use units::random::Xorshift;

/// Of an entry: there is a line; it was written to. The line's number is above.
const VALID: u64 = 1;
const DIRTY: u64 = 2;
const FLAGS: u32 = 2;

/// A line that had to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replaced {
    pub line: u64,
    pub is_dirty: bool,
}

pub(crate) struct Sets {
    entries: Vec<u64>,
    ways: usize,
    sets: u64,
    /// If the sets are a power of two: by the line's lowest bits. Else by a hash, as last levels
    /// do.
    mask: Option<u64>,
    replacement: Replacement,
    random: Xorshift,
}

impl Sets {
    pub(crate) fn new(cache: Cache, replacement: Replacement) -> Self {
        let ways = u64::from(cache.ways.max(1));
        let sets = (cache.bytes / LINE / ways).max(1);
        Self::of(sets, ways, replacement)
    }

    /// By the number of sets and ways.
    pub(crate) fn of(sets: u64, ways: u64, replacement: Replacement) -> Self {
        Self {
            entries: vec![0; (sets * ways) as usize],
            ways: ways as usize,
            sets,
            mask: sets.is_power_of_two().then(|| sets - 1),
            replacement,
            random: Xorshift::new(0x9e37_79b9_7f4a_7c15),
        }
    }

    fn set(&mut self, line: u64) -> &mut [u64] {
        let set = if let Some(mask) = self.mask {
            line & mask
        } else {
            let hash = line.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            ((u128::from(hash) * u128::from(self.sets)) >> 64) as u64
        };
        let begin = set as usize * self.ways;
        &mut self.entries[begin..begin + self.ways]
    }

    /// Whether it holds a line, which is then the most recently used, and written to if `writes`.
    #[inline]
    pub(crate) fn touch(&mut self, line: u64, writes: bool) -> bool {
        let wanted = line << FLAGS;
        let dirty = if writes { DIRTY } else { 0 };
        let set = self.set(line);
        if set[0] & !DIRTY == wanted | VALID {
            set[0] |= dirty;
            return true;
        }
        let Some(at) = set.iter().position(|&entry| entry & !DIRTY == wanted | VALID) else { return false };
        set[..=at].rotate_right(1);
        set[0] |= dirty;
        true
    }

    /// Puts a line in that is not there; what had to go for it.
    pub(crate) fn insert(&mut self, line: u64, is_dirty: bool) -> Option<Replaced> {
        let any = if self.replacement == Replacement::Any {
            Some(self.random.below(self.ways as u64) as usize)
        } else {
            None
        };
        let set = self.set(line);
        let last = set.len() - 1;
        let out = match any {
            Some(any) if set[last] & VALID != 0 => any,
            _ => last,
        };
        let old = set[out];
        set[..=out].rotate_right(1);
        set[0] = line << FLAGS | VALID | if is_dirty { DIRTY } else { 0 };
        (old & VALID != 0).then_some(Replaced { line: old >> FLAGS, is_dirty: old & DIRTY != 0 })
    }

    /// Takes a line out; whether it was written to, if it was there.
    pub(crate) fn remove(&mut self, line: u64) -> Option<bool> {
        let wanted = line << FLAGS | VALID;
        let set = self.set(line);
        let at = set.iter().position(|&entry| entry & !DIRTY == wanted)?;
        let is_dirty = set[at] & DIRTY != 0;
        set[at..].rotate_left(1);
        let last = set.len() - 1;
        set[last] = 0;
        Some(is_dirty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_ways(replacement: Replacement) -> Sets {
        Sets::new(Cache { bytes: 4 * 2 * LINE, ways: 2 }, replacement)
    }

    #[test]
    fn the_least_recently_used_line_goes() {
        let mut cache = two_ways(Replacement::LeastRecentlyUsed);
        // Lines 0, 4 and 8 are of one set.
        assert_eq!((cache.insert(0, false), cache.insert(4, true)), (None, None));
        assert!(cache.touch(0, false));
        assert_eq!(cache.insert(8, false), Some(Replaced { line: 4, is_dirty: true }));
        assert!(!cache.touch(4, false) && cache.touch(0, false) && cache.touch(8, true));
        assert_eq!((cache.remove(8), cache.remove(8)), (Some(true), None));
        assert_eq!(cache.insert(12, false), None, "there is space again");
        assert_eq!(cache.insert(1, false), None, "of another set");
    }

    #[test]
    fn any_line_goes_once_the_set_is_full() {
        let mut cache = two_ways(Replacement::Any);
        assert_eq!((cache.insert(0, false), cache.insert(4, false)), (None, None));
        let gone: Vec<u64> =
            (2..40).filter_map(|line| cache.insert(4 * line, false)).map(|r| r.line).collect();
        assert_eq!(gone.len(), 38);
        let newest = gone.iter().zip(2..).filter(|&(&gone, line)| gone == 4 * (line - 1)).count();
        assert!((8..30).contains(&newest), "neither always the newest nor always the oldest: {newest}");
    }

    #[test]
    fn sizes_that_are_no_power_of_two_hold_as_much() {
        let mut cache = Sets::new(Cache { bytes: 3 << 20, ways: 12 }, Replacement::LeastRecentlyUsed);
        let lines = (3 << 20) / LINE / 2;
        for line in 0..lines {
            cache.insert(line, false);
        }
        let kept = (0..lines).filter(|&line| cache.touch(line, false)).count() as f64;
        assert!(kept > 0.97 * lines as f64, "{kept} of {lines}");
    }
}
