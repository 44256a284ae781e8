//! Translation buffers: two levels, by page.

use crate::geometry::{Buffers, Replacement};
use crate::set::Sets;

const FIRST_WAYS: u64 = 4;
const SECOND_WAYS: u64 = 8;

pub(crate) struct Pages {
    first: Sets,
    second: Sets,
    shift: u32,
    last: u64,
}

impl Pages {
    pub(crate) fn new(buffers: &Buffers) -> Self {
        let of = |entries: u32, ways: u64| {
            Sets::of((u64::from(entries) / ways).max(1), ways, Replacement::LeastRecentlyUsed)
        };
        Self {
            first: of(buffers.first, FIRST_WAYS),
            second: of(buffers.second, SECOND_WAYS),
            shift: buffers.page_bytes.max(1).trailing_zeros(),
            last: u64::MAX,
        }
    }

    /// Whether the translation of an address takes a walk of the page tables.
    #[inline]
    pub(crate) fn walks(&mut self, address: u64) -> bool {
        let page = address >> self.shift;
        if page == self.last {
            return false;
        }
        self.last = page;
        if self.first.touch(page, false) {
            return false;
        }
        self.first.insert(page, false);
        let known = self.second.touch(page, false);
        if !known {
            self.second.insert(page, false);
        }
        !known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_pages_as_there_are_entries() {
        let mut pages = Pages::new(&Buffers { first: 64, second: 2048, page_bytes: 4096 });
        let mut walks = |count: u64| (0..count).filter(|page| pages.walks(page * 4096)).count();
        assert_eq!((walks(2048), walks(2048)), (2048, 0));
        // The least recently used goes, so a second round finds none of them.
        assert_eq!((walks(4096), walks(4096)), (2048, 4096));
    }

    #[test]
    fn large_pages_reach_further() {
        let mut pages = Pages::new(&Buffers { first: 64, second: 2048, page_bytes: 2 << 20 });
        let walks = (0..(64 << 20) / 4096_u64).filter(|page| pages.walks(page * 4096)).count();
        assert_eq!(walks, 32);
    }
}
