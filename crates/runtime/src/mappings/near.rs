//! A page near code that is to be changed, in reach of a jump. Where the kernel chooses, it may lie
//! gigabytes away: all programs of a harvest share an address space, and others map theirs between
//! a library and the first code that asks here.

use crate::layout::area::Area;
use crate::mappings::maps::{self, MapsLine};
use crate::mappings::{PAGE, memory};
use crate::sys;

/// How far a jump reaches, less than all libraries take.
const REACH: usize = (1 << 31) - (64 << 20);
/// The kernel lets nothing be mapped closer below a stack.
const BELOW_STACK: usize = 2 << 20;
/// Others may take the place that was found.
const TRIES: usize = 8;

/// The free page that is nearest to an address, of what was told.
struct NearestPage {
    to: usize,
    /// Where the last mapping ended.
    free_from: usize,
    found: Option<usize>,
}

impl NearestPage {
    fn new(to: usize) -> Self {
        Self { to, free_from: usize::MAX, found: None }
    }

    /// The next mapping, in the order of addresses.
    fn take(&mut self, line: &MapsLine) {
        let distance = if line.special { BELOW_STACK } else { PAGE };
        if line.start >= self.free_from.saturating_add(distance) {
            for page in [self.free_from, line.start - distance] {
                let nearer = |found: usize| page.abs_diff(self.to) < found.abs_diff(self.to);
                if page.abs_diff(self.to) < REACH && self.found.is_none_or(nearer) {
                    self.found = Some(page);
                }
            }
        }
        self.free_from = line.end;
    }
}

/// A page of the scavenger's that may be executed, in reach of `code`.
///
/// # Safety
/// As [`memory`].
pub(crate) unsafe fn code_page(area: &Area, code: usize) -> Option<usize> {
    let mut at = 0;
    for _ in 0..TRIES {
        // SAFETY: a new mapping; the address is a wish.
        let page = unsafe { memory(area, at, PAGE, sys::PROT_READ | sys::PROT_EXEC, 0) }.ok()?;
        if page.abs_diff(code) < REACH {
            return Some(page);
        }
        // SAFETY: just mapped, and not used.
        unsafe { sys::munmap(page, PAGE) };
        let mut nearest = NearestPage::new(code);
        maps::each(|line| nearest.take(line));
        at = nearest.found?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearest(to: usize, lines: &[(usize, usize, bool)]) -> Option<usize> {
        let mut it = NearestPage::new(to);
        for (start, end, special) in lines {
            it.take(&MapsLine { start: *start, end: *end, special: *special, ..MapsLine::default() });
        }
        it.found
    }

    #[test]
    fn the_nearest_free_page_is_found_if_it_is_in_reach() {
        const CODE: usize = 0x7f00_0000_0000;
        let code = (CODE, CODE + 0x20_0000, false);
        let far = (CODE - 4 * REACH, CODE, false);
        // Full below, one page free above.
        let above = (code.1 + PAGE, code.1 + 9 * PAGE, false);
        assert_eq!(nearest(CODE, &[far, code, above]), Some(code.1));
        // Nothing free but below what is too far.
        let last = (code.1, code.1 + 4 * REACH, false);
        let first = (CODE - 5 * REACH, CODE - 4 * REACH - PAGE, false);
        assert_eq!(nearest(CODE, &[first, far, code, last]), None);
        // Not close below a stack.
        let stack = (code.1 + PAGE, code.1 + 9 * PAGE, true);
        assert_eq!(nearest(CODE, &[far, code, stack]), None);
        let stack = (code.1 + BELOW_STACK, code.1 + BELOW_STACK + PAGE, true);
        assert_eq!(nearest(CODE, &[far, code, stack]), Some(code.1));
        // Below, where that is nearer.
        let below = (CODE - 64 * PAGE, CODE - PAGE, false);
        assert_eq!(nearest(CODE, &[below, code, above]), Some(CODE - PAGE));
    }
}
