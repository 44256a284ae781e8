//! Where memory is allocated: the calls that led to an allocation, and how much each path of calls
//! allocates. Paths that are the same in two processes are one site.

use crate::samples::address_space::Place;
use std::collections::HashMap;

/// A path of calls that allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteId(pub u32);

/// What is known of a site. Counts are estimates where not all pages are chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Site {
    /// The calls, innermost first; each place is inside its call instruction.
    pub calls: Vec<Place>,
    /// The smallest and the largest allocation.
    pub bytes: Option<(u64, u64)>,
    pub allocations: f64,
    /// The sum of the squares of what each record stands for.
    pub squares: f64,
    /// How many live now, and how many did at most.
    pub lives: f64,
    pub most: f64,
    /// Records behind these figures.
    pub records: u64,
    /// Of all allocations together.
    pub total_bytes: f64,
    /// How many of them it is known of how long they lived, and how long that was together.
    pub lived: f64,
    pub lifetimes_ns: f64,
    /// It maps memory itself.
    pub maps: bool,
}

/// All sites.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    all: Vec<Site>,
    ids: HashMap<Vec<Place>, SiteId>,
}

/// Calls of a path that are kept: further out, all paths of a program are alike.
const MOST_CALLS: usize = 32;
/// Paths that are kept apart: 16 MiB at most. Others are known by their innermost call alone.
const MOST_SITES: usize = 16 << 10;

impl Sites {
    /// The site of these calls, given now or before.
    pub fn id(&mut self, mut calls: Vec<Place>) -> SiteId {
        calls.truncate(if self.all.len() < MOST_SITES { MOST_CALLS } else { 1 });
        if let Some(&known) = self.ids.get(&calls) {
            return known;
        }
        let id = SiteId(self.all.len() as u32);
        self.all.push(Site { calls: calls.clone(), ..Site::default() });
        self.ids.insert(calls, id);
        id
    }

    pub fn all(&self) -> impl Iterator<Item = (SiteId, &Site)> {
        self.all.iter().enumerate().map(|(index, site)| (SiteId(index as u32), site))
    }

    pub fn get(&self, id: SiteId) -> &Site {
        &self.all[id.0 as usize]
    }

    /// An allocation was made, which stands for `weight` of them.
    pub(crate) fn began(&mut self, id: SiteId, size: u64, weight: f64) {
        let site = &mut self.all[id.0 as usize];
        let (least, most) = site.bytes.unwrap_or((size, size));
        site.bytes = Some((least.min(size), most.max(size)));
        site.allocations += weight;
        site.squares += weight * weight;
        site.records += 1;
        site.total_bytes += weight * size as f64;
        self.lives_on(id, weight);
    }

    /// It maps memory itself.
    pub(crate) fn maps(&mut self, id: SiteId) {
        self.all[id.0 as usize].maps = true;
    }

    /// An allocation that stands for `weight` of them lived from one time until another.
    pub(crate) fn lived(&mut self, id: SiteId, weight: f64, from_ns: u64, to_ns: u64) {
        let site = &mut self.all[id.0 as usize];
        site.lived += weight;
        site.lifetimes_ns += weight * to_ns.saturating_sub(from_ns) as f64;
    }

    pub(crate) fn ended(&mut self, id: SiteId, weight: f64) {
        self.all[id.0 as usize].lives -= weight;
    }

    pub(crate) fn lives_on(&mut self, id: SiteId, weight: f64) {
        let site = &mut self.all[id.0 as usize];
        site.lives += weight;
        site.most = site.most.max(site.lives);
    }

    /// What lives is counted anew.
    pub(crate) fn none_lives(&mut self) {
        for site in &mut self.all {
            site.lives = 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::address_space::MappedId;
    use units::FileOffset;

    #[test]
    fn the_same_calls_are_one_site() {
        let mut sites = Sites::default();
        let place = |offset| Place { what: MappedId(0), offset: FileOffset(offset) };
        let one = sites.id(vec![place(1), place(2)]);
        assert_eq!(sites.id(vec![place(1), place(2)]), one);
        assert_ne!(sites.id(vec![place(1)]), one);
        let deep = sites.id((0..100).map(place).collect());
        assert_eq!(sites.get(deep).calls.len(), MOST_CALLS);
    }

    #[test]
    fn what_lives_and_what_did_at_most_are_counted() {
        let mut sites = Sites::default();
        let id = sites.id(Vec::new());
        sites.began(id, 16, 1.0);
        sites.began(id, 64, 1.0);
        sites.ended(id, 1.0);
        let site = sites.get(id);
        assert_eq!((site.bytes, site.allocations, site.lives, site.most), (Some((16, 64)), 2.0, 1.0, 2.0));
    }
}
