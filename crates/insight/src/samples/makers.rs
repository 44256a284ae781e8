//! Where in a process small allocations were known, and which sites made them.
//!
//! Few pages are chosen where many allocations are made at once. So of most addresses in such
//! memory no allocation is known; but in the midst of what one site made, they are most likely of
//! it, too. This is kept to the end, also of what was freed and of pages that are chosen no more.

use crate::samples::sites::SiteId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The size of a piece of the address space.
const PIECE_BITS: u32 = 18;
/// More sites than these in one piece are not told apart.
const MOST_MAKERS: usize = 4;

/// The sites of one piece; `None`: there were too many.
type Makers = Option<Vec<SiteId>>;

/// Of one process, by the piece; a forked child shares it until one of both changes it.
#[derive(Clone, Debug, Default)]
pub struct SmallMakers(Arc<BTreeMap<u64, Makers>>);

impl SmallMakers {
    /// A small allocation of a site begins here.
    pub fn note(&mut self, address: u64, site: SiteId) {
        let piece = address >> PIECE_BITS;
        let is_told = |makers: &Makers| makers.as_ref().is_none_or(|all| all.contains(&site));
        if self.0.get(&piece).is_some_and(is_told) {
            return;
        }
        let makers = Arc::make_mut(&mut self.0).entry(piece).or_insert(Some(Vec::new()));
        *makers = makers.take().filter(|all| all.len() < MOST_MAKERS).map(|mut all| {
            all.push(site);
            all
        });
    }

    /// Whether there were any in this memory.
    pub fn are_in(&self, start: u64, end: u64) -> bool {
        start < end && self.0.range(start >> PIECE_BITS..=(end - 1) >> PIECE_BITS).next().is_some()
    }

    /// The sites on either side of an address in this memory, as far as they are known.
    pub fn beside(&self, address: u64, start: u64, end: u64) -> Option<impl Iterator<Item = SiteId>> {
        let [first, piece, last] = [start, address, end.saturating_sub(1)].map(|at| at >> PIECE_BITS);
        if first > piece || piece > last {
            return None;
        }
        let below = self.0.range(first..=piece).next_back();
        let above = self.0.range(piece..=last).next();
        below.or(above)?;
        let sides: Option<Vec<&Vec<SiteId>>> =
            below.into_iter().chain(above).map(|(_, makers)| makers.as_ref()).collect();
        Some(sides?.into_iter().flatten().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 0x5555_0000_0000;
    const END: u64 = AT + (1 << 24);

    fn beside(makers: &SmallMakers, at: u64) -> Option<Vec<u32>> {
        Some(makers.beside(at, AT, END)?.map(|site| site.0).collect())
    }

    #[test]
    fn makers_of_neighbouring_allocations_are_known() {
        let mut makers = SmallMakers::default();
        assert_eq!((beside(&makers, AT), makers.are_in(AT, END)), (None, false));
        for (at, site) in [(AT, 1), (AT + (1 << 20), 1), (AT + (1 << 22), 2)] {
            makers.note(at, SiteId(site));
        }
        assert_eq!(beside(&makers, AT + (1 << 19)), Some(vec![1, 1]));
        assert_eq!(beside(&makers, AT + (1 << 21)), Some(vec![1, 2]));
        assert_eq!(beside(&makers, AT + (1 << 23)), Some(vec![2]));
        assert_eq!(beside(&makers, END), None, "outside");
        assert!(makers.are_in(AT + 1, END) && !makers.are_in(AT + (1 << 23), END));
        assert!(!makers.are_in(END, AT));
    }

    #[test]
    fn where_many_sites_are_none_is_named() {
        let mut makers = SmallMakers::default();
        (0..=MOST_MAKERS as u32).for_each(|site| makers.note(AT, SiteId(site)));
        makers.note(AT + (1 << 20), SiteId(9));
        assert_eq!(beside(&makers, AT), None);
        assert_eq!(beside(&makers, AT + (1 << 19)), None, "one side is of many");
        assert_eq!(beside(&makers, AT + (1 << 21)), Some(vec![9]));
    }
}
