//! Which allocation holds an address, at the time of a sample.
//!
//! Events tell of allocations in chosen pages and of large ones; about all others nothing is known
//! (see the crate `heap`). Memory is bounded: what ends is forgotten, and a sample that is kept
//! takes along the few allocations that its registers point to. Which of these it read is decided
//! later, when the load is known.
//!
//! Memory that a process maps itself is known besides (`areas.rs`): what no allocation holds lies
//! there.
//!
//! A process's allocations lie in pieces of its address space that a forked child shares until one
//! of both changes them.

use crate::samples::areas::{Area, Areas};
use crate::samples::makers::SmallMakers;
use crate::samples::sites::{SiteId, Sites};
use heap::layout::{LARGE_FROM, is_chosen, share};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Memory was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocated {
    pub process: u32,
    pub time_ns: u64,
    pub address: u64,
    pub size: u64,
    /// Its end is told even when its page is no longer chosen.
    pub is_kept: bool,
}

/// An allocation that lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Live {
    size: u64,
    site: SiteId,
    is_kept: bool,
    began_ns: u64,
}

impl Live {
    /// How many allocations it stands for, among those of its kind.
    fn weight(&self, address: u64, threshold: u32) -> f64 {
        match (self.is_kept, self.size >= LARGE_FROM) {
            (true, true) => 1.0,
            // It reaches into a chosen page; those that begin on one count.
            (true, false) if !is_chosen(address, threshold) => 0.0,
            _ => 1.0 / share(threshold),
        }
    }
}

/// An allocation that a sample's registers point to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Near {
    start: u64,
    /// In units of 16 bytes; zero for none.
    units: u32,
    site: u32,
}

const UNIT: u64 = 16;
/// In `Near::site`: one of a sample of allocations, which stands for others, too.
const STANDS_FOR_OTHERS: u32 = 1 << 31;
/// In `Near::site`: memory that the process maps itself.
const IS_AREA: u32 = 1 << 30;

impl Near {
    fn of(address: u64, live: &Live) -> Self {
        let units = u32::try_from(live.size.div_ceil(UNIT).max(1)).unwrap_or(u32::MAX);
        let is_alone = live.is_kept && live.size >= LARGE_FROM;
        Self { start: address, units, site: live.site.0 | if is_alone { 0 } else { STANDS_FOR_OTHERS } }
    }

    fn of_area(start: u64, area: &Area) -> Self {
        let units = u32::try_from((area.end - start).div_ceil(UNIT)).unwrap_or(u32::MAX);
        Self { start, units, site: area.site.0 | IS_AREA }
    }

    fn holds(&self, address: u64) -> bool {
        address.wrapping_sub(self.start) < u64::from(self.units) * UNIT
    }

    pub fn start(&self) -> u64 {
        self.start
    }

    pub fn site(&self) -> SiteId {
        SiteId(self.site & !(STANDS_FOR_OTHERS | IS_AREA))
    }

    pub fn end(&self) -> u64 {
        self.start.saturating_add(u64::from(self.units) * UNIT)
    }

    pub fn is_area(&self) -> bool {
        self.site & IS_AREA != 0
    }

    pub fn stands_for_others(&self) -> bool {
        self.site & STANDS_FOR_OTHERS != 0
    }
}

/// The allocations that a sample's registers point to, as many as there is space for.
pub(crate) type AllNear = [Near; 4];

/// The one of these that holds an address.
pub(crate) fn holder(near: &AllNear, address: u64) -> Option<&Near> {
    near.iter().find(|near| near.holds(address))
}

/// A register may point right behind what it is used with.
const BEHIND: u64 = 64;
/// The size of a piece of the address space.
const PIECE_BITS: u32 = 18;

type Piece = BTreeMap<u64, Live>;

/// The allocations of one process.
#[derive(Clone, Debug, Default)]
struct Process {
    pieces: BTreeMap<u64, Arc<Piece>>,
    areas: Areas,
    sites: Arc<HashMap<u64, SiteId>>,
    small: SmallMakers,
}

impl Process {
    /// The last allocation that begins at `address` or before.
    fn before(&self, address: u64) -> Option<(u64, &Live)> {
        let mut pieces = self.pieces.range(..=address >> PIECE_BITS).rev();
        let found = pieces.find_map(|(_, piece)| piece.range(..=address).next_back());
        found.map(|(at, live)| (*at, live))
    }

    fn remove(&mut self, address: u64) -> Option<Live> {
        let key = address >> PIECE_BITS;
        let piece = self.pieces.get_mut(&key)?;
        piece.get(&address)?;
        let removed = Arc::make_mut(piece).remove(&address);
        if piece.is_empty() {
            self.pieces.remove(&key);
        }
        removed
    }
}

/// The allocations of all processes.
#[derive(Clone, Debug)]
pub struct Heaps {
    processes: HashMap<u32, Process>,
    /// Of processes that ended, what is known of their small allocations.
    ended: HashMap<u32, SmallMakers>,
    /// All processes whose calls of `malloc` were told of at any time.
    told_of: HashSet<u32>,
    pub sites: Sites,
    /// From which time on which pages were chosen.
    thresholds: Vec<(u64, u32)>,
    live: usize,
    /// Allocations that the model had no space for.
    pub left_out: u64,
}

/// Of this number of processes that ended it is kept which small allocations they had.
const MOST_ENDED: usize = 1024;
/// More allocations than this are not kept at a time: 16 MiB.
pub(crate) const MOST_LIVE: usize = 256 << 10;

impl Default for Heaps {
    fn default() -> Self {
        Self {
            processes: HashMap::new(),
            ended: HashMap::new(),
            told_of: HashSet::new(),
            sites: Sites::default(),
            thresholds: vec![(0, u32::MAX)],
            live: 0,
            left_out: 0,
        }
    }
}

impl Heaps {
    pub fn threshold(&self) -> u32 {
        self.thresholds.last().map_or(u32::MAX, |&(_, threshold)| threshold)
    }

    fn threshold_at(&self, time_ns: u64) -> u32 {
        let behind = self.thresholds.partition_point(|&(from, _)| from <= time_ns);
        self.thresholds[behind.saturating_sub(1)].1
    }

    /// A process began to tell of its allocations.
    pub fn began(&mut self, process: u32, time_ns: u64) {
        self.forget(process, time_ns);
        self.told_of.insert(process);
        self.processes.insert(process, Process::default());
    }

    /// A process tells of its allocations, though it was not known to.
    pub fn tells(&mut self, process: u32) {
        self.told_of.insert(process);
    }

    /// A process ended, or executes another program.
    pub fn forget(&mut self, process: u32, time_ns: u64) {
        let Some(gone) = self.processes.remove(&process) else { return };
        if self.ended.len() < MOST_ENDED {
            self.ended.insert(process, gone.small);
        }
        for (address, live) in gone.pieces.values().flat_map(|piece| piece.iter()) {
            self.live -= 1;
            let weight = live.weight(*address, self.threshold());
            self.sites.ended(live.site, weight);
            self.sites.lived(live.site, weight, live.began_ns, time_ns);
        }
        for area in gone.areas.all().filter(|area| area.counts) {
            self.sites.ended(area.site, 1.0);
        }
    }

    /// The run is over: what lives now has lived until this time.
    pub fn end(&mut self, time_ns: u64) {
        let threshold = self.threshold();
        for process in self.processes.values() {
            for (address, live) in process.pieces.values().flat_map(|piece| piece.iter()) {
                self.sites.lived(live.site, live.weight(*address, threshold), live.began_ns, time_ns);
            }
        }
    }

    /// A child has what its parent has.
    pub fn forked(&mut self, process: u32, parent: u32, time_ns: u64) {
        self.forget(process, time_ns);
        let Some(copy) = self.processes.get(&parent).cloned() else { return };
        self.told_of.insert(process);
        // What a child shares was allocated once, by its parent: it does not count as allocated.
        let threshold = self.threshold();
        for (address, live) in copy.pieces.values().flat_map(|piece| piece.iter()) {
            self.live += 1;
            self.sites.lives_on(live.site, live.weight(*address, threshold));
        }
        for area in copy.areas.all().filter(|area| area.counts) {
            self.sites.lives_on(area.site, 1.0);
        }
        self.processes.insert(process, copy);
    }

    /// The site of a key of this process, if it is known.
    pub fn site(&self, process: u32, key: u64) -> Option<SiteId> {
        self.processes.get(&process)?.sites.get(&key).copied()
    }

    pub fn learn(&mut self, process: u32, key: u64, site: SiteId) {
        Arc::make_mut(&mut self.processes.entry(process).or_default().sites).insert(key, site);
    }

    pub fn allocated(&mut self, new: &Allocated, site: SiteId) {
        let threshold = self.threshold();
        if new.size < LARGE_FROM {
            self.processes.entry(new.process).or_default().small.note(new.address, site);
        }
        if !new.is_kept && !is_chosen(new.address, threshold) {
            return; // Told before it was known that this page is no longer chosen.
        }
        let live = Live { size: new.size, site, is_kept: new.is_kept, began_ns: new.time_ns };
        let weight = live.weight(new.address, threshold);
        let end = new.address.saturating_add(new.size.max(1));
        // The ends of what is still there were lost.
        let process = self.processes.entry(new.process).or_default();
        while let Some((address, old)) = process.before(end - 1) {
            if address.saturating_add(old.size.max(1)) <= new.address {
                break;
            }
            if old.began_ns > new.time_ns {
                return; // Told too late: that memory is used again.
            }
            let (began_ns, removed) = (old.began_ns, process.remove(address));
            self.live -= 1;
            let weight = removed.map_or(0.0, |live| live.weight(address, threshold));
            self.sites.ended(site_of(removed), weight);
            self.sites.lived(site_of(removed), weight, began_ns, new.time_ns);
        }
        self.sites.began(site, new.size, weight);
        if self.live == MOST_LIVE {
            self.left_out += 1;
            self.sites.ended(site, weight);
            return;
        }
        self.live += 1;
        let piece = new.address >> PIECE_BITS;
        Arc::make_mut(process.pieces.entry(piece).or_default()).insert(new.address, live);
    }

    pub fn freed(&mut self, process: u32, address: u64, time_ns: u64) {
        let threshold = self.threshold();
        let Some(process) = self.processes.get_mut(&process) else { return };
        let newer =
            process.before(address).is_some_and(|(at, live)| at == address && live.began_ns > time_ns);
        if newer {
            return;
        }
        if let Some(live) = process.remove(address) {
            self.live -= 1;
            let weight = live.weight(address, threshold);
            self.sites.ended(live.site, weight);
            self.sites.lived(live.site, weight, live.began_ns, time_ns);
        }
    }

    /// A process mapped memory that no file has.
    pub fn mapped(&mut self, new: &Allocated, site: SiteId) {
        let end = new.address.saturating_add(new.size);
        self.unmapped(new.process, new.address, new.size, new.time_ns);
        let area = Area { end, site, began_ns: new.time_ns, counts: true };
        let process = self.processes.entry(new.process).or_default();
        if process.areas.insert(new.address, area) {
            self.sites.maps(site);
            self.sites.began(site, new.size, 1.0);
        } else {
            self.left_out += 1;
        }
    }

    /// A range of a process holds no such memory any more.
    pub fn unmapped(&mut self, process: u32, address: u64, size: u64, time_ns: u64) {
        let Some(process) = self.processes.get_mut(&process) else { return };
        if process.areas.before(address).is_some_and(|(at, area)| at == address && area.began_ns > time_ns) {
            return; // Told too late: that memory is used again.
        }
        for area in process.areas.cut(address, address.saturating_add(size)) {
            self.sites.ended(area.site, 1.0);
            self.sites.lived(area.site, 1.0, area.began_ns, time_ns);
        }
    }

    /// Fewer pages are chosen. Of the others, nothing is known from now on.
    pub fn lowered(&mut self, threshold: u32, time_ns: u64) {
        if threshold >= self.threshold() {
            return;
        }
        self.thresholds.push((time_ns, threshold));
        self.sites.none_lives();
        self.live = 0;
        for process in self.processes.values_mut() {
            for piece in process.pieces.values_mut() {
                let stays = |address: u64, live: &Live| live.is_kept || is_chosen(address, threshold);
                if !piece.iter().all(|(address, live)| stays(*address, live)) {
                    Arc::make_mut(piece).retain(|address, live| stays(*address, live));
                }
                self.live += piece.len();
                for (address, live) in piece.iter() {
                    self.sites.lives_on(live.site, live.weight(*address, threshold));
                }
            }
            process.pieces.retain(|_, piece| !piece.is_empty());
            for area in process.areas.all().filter(|area| area.counts) {
                self.sites.lives_on(area.site, 1.0);
            }
        }
    }

    /// More allocations live than there is soon space for: fewer pages should be chosen.
    pub fn is_nearly_full(&self) -> bool {
        self.live > MOST_LIVE / 8 * 7
    }

    /// The allocations that hold these addresses, or end right before them; where there is space,
    /// the areas as well. Of a sample that tells no address, any of its registers may hold it.
    pub fn near(&self, process: u32, addresses: &[u64]) -> AllNear {
        const LEAST_ADDRESS: u64 = 4096;
        let mut found = AllNear::default();
        let Some(process) = self.processes.get(&process) else { return found };
        if process.pieces.is_empty() && process.areas.is_empty() {
            return found;
        }
        let mut count = 0;
        let addresses = addresses.iter().filter(|&&address| address >= LEAST_ADDRESS);
        for &address in addresses.clone() {
            let Some((start, live)) = process.before(address) else { continue };
            let is_near = address - start < live.size.saturating_add(BEHIND);
            if is_near && found[..count].iter().all(|near| near.start != start) {
                found[count] = Near::of(start, live);
                count += 1;
                if count == found.len() {
                    return found;
                }
            }
        }
        // An address in both is the allocation's, which comes first.
        for &address in addresses {
            let Some((start, area)) = process.areas.before(address) else { continue };
            let is_near = address < area.end.saturating_add(BEHIND);
            if is_near && found[..count].iter().all(|near| near.start != start || !near.is_area()) {
                found[count] = Near::of_area(start, area);
                count += 1;
                if count == found.len() {
                    return found;
                }
            }
        }
        found
    }

    pub fn was_told_of(&self, process: u32) -> bool {
        self.told_of.contains(&process)
    }

    /// Whether nothing can be known of an address at this time, since its page was not chosen.
    pub fn is_unknown(&self, process: u32, address: u64, time_ns: u64) -> bool {
        self.was_told_of(process) && !is_chosen(address, self.threshold_at(time_ns))
    }

    /// Whether an area of memory is none that allocators hand out in small parts: this many of its
    /// pages were chosen that some of these would be known.
    pub fn has_no_small(&self, process: u32, start: u64, end: u64) -> bool {
        const ENOUGH_CHOSEN: f64 = 16.0;
        let chosen = end.saturating_sub(start) as f64 / 4096.0 * self.share();
        self.small(process).is_some() && chosen >= ENOUGH_CHOSEN && !self.had_small(process, start, end)
    }

    /// Whether small allocations were known in this memory at some time.
    pub fn had_small(&self, process: u32, start: u64, end: u64) -> bool {
        self.small(process).is_some_and(|small| small.are_in(start, end))
    }

    /// Where small allocations of a process were known, also of one that ended.
    pub fn small(&self, process: u32) -> Option<&SmallMakers> {
        let lives = self.processes.get(&process).map(|process| &process.small);
        lives.or_else(|| self.ended.get(&process))
    }

    /// The share of the pages that was chosen in the end.
    pub fn share(&self) -> f64 {
        share(self.threshold())
    }
}

fn site_of(live: Option<Live>) -> SiteId {
    live.expect("it was found").site
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 0x5555_0000_0000;

    fn heaps() -> (Heaps, SiteId) {
        let mut heaps = Heaps::default();
        heaps.began(1, 0);
        let site = heaps.sites.id(Vec::new());
        (heaps, site)
    }

    fn allocate(heaps: &mut Heaps, site: SiteId, address: u64, size: u64, time_ns: u64) {
        heaps.allocated(&Allocated { process: 1, time_ns, address, size, is_kept: size >= 4096 }, site);
    }

    fn at(heaps: &Heaps, process: u32, address: u64) -> Option<u64> {
        holder(&heaps.near(process, &[address]), address).map(|near| near.start)
    }

    #[test]
    fn addresses_are_of_what_lives_there() {
        let (mut heaps, site) = heaps();
        allocate(&mut heaps, site, AT, 100, 1);
        allocate(&mut heaps, site, AT + 112, 1 << 20, 2);
        assert_eq!(at(&heaps, 1, AT + 99), Some(AT));
        assert_eq!(at(&heaps, 1, AT + 112 + (1 << 19)), Some(AT + 112), "in the midst of a large one");
        assert_eq!(at(&heaps, 1, AT + 112 + (1 << 20) + 16), None);
        assert_eq!(at(&heaps, 2, AT), None, "another process");
        heaps.freed(1, AT, 3);
        assert_eq!(at(&heaps, 1, AT), None);
    }

    #[test]
    fn what_was_lost_or_late_does_no_harm() {
        let (mut heaps, site) = heaps();
        allocate(&mut heaps, site, AT, 64, 10);
        allocate(&mut heaps, site, AT + 32, 64, 20);
        assert_eq!(at(&heaps, 1, AT), None, "its end was lost: it overlaps a newer one");
        assert_eq!(at(&heaps, 1, AT + 32), Some(AT + 32));
        allocate(&mut heaps, site, AT, 64, 15);
        assert_eq!(at(&heaps, 1, AT + 40), Some(AT + 32), "told too late");
        allocate(&mut heaps, site, AT + 4096, 64, 30);
        heaps.freed(1, AT + 4096, 25);
        assert_eq!(at(&heaps, 1, AT + 4096), Some(AT + 4096), "the end of an earlier use");
    }

    #[test]
    fn a_child_has_what_its_parent_had() {
        let (mut heaps, site) = heaps();
        allocate(&mut heaps, site, AT, 64, 1);
        heaps.forked(2, 1, 2);
        heaps.freed(1, AT, 2);
        assert_eq!((at(&heaps, 1, AT), at(&heaps, 2, AT)), (None, Some(AT)));
        heaps.forget(2, 3);
        assert_eq!((at(&heaps, 2, AT), heaps.live), (None, 0));
    }

    #[test]
    fn fewer_chosen_pages_stand_for_all() {
        let (mut heaps, site) = heaps();
        for page in 0..10_000_u64 {
            allocate(&mut heaps, site, AT + 4096 * page, 64, 1);
        }
        allocate(&mut heaps, site, AT - (1 << 20), 8192, 1);
        heaps.lowered(u32::MAX / 16, 100);
        assert!((400..900).contains(&heaps.live), "{}", heaps.live);
        let lives = heaps.sites.get(site).lives;
        assert!((8_000.0..12_000.0).contains(&lives), "{lives}");
        assert!(at(&heaps, 1, AT - (1 << 20)).is_some(), "large ones are always known");
        let gone = (0..100).map(|page| AT + 4096 * page).find(|&a| at(&heaps, 1, a).is_none()).unwrap();
        assert!(
            heaps.is_unknown(1, gone, 100)
                && !heaps.is_unknown(1, gone, 99)
                && !heaps.is_unknown(2, gone, 100)
        );
    }

    #[test]
    fn makers_of_small_allocations_are_known_to_the_end() {
        let (mut heaps, site) = heaps();
        heaps.lowered(1, 0);
        allocate(&mut heaps, site, AT, 64, 1);
        assert_eq!(at(&heaps, 1, AT), None, "its end will not be told");
        heaps.forget(1, 2);
        assert!(heaps.had_small(1, AT, AT + 4096), "its samples are still looked at");
    }

    #[test]
    fn what_a_program_maps_itself_holds_no_allocations() {
        let (mut heaps, site) = heaps();
        for page in 0..1000_u64 {
            allocate(&mut heaps, site, AT + 4096 * page, 64, 1);
        }
        let (end, other) = (AT + 4096 * 1000, AT + (1 << 30));
        heaps.freed(1, AT, 2);
        assert!(!heaps.has_no_small(1, AT, end) && heaps.has_no_small(1, other, other + (4 << 20)));
        heaps.lowered(u32::MAX / 1000, 3);
        assert!(!heaps.has_no_small(1, other, other + (4 << 20)), "too few of its pages were chosen");
        assert!(!heaps.has_no_small(2, other, other + (4 << 20)), "another process");
    }

    #[test]
    fn what_is_mapped_is_known_where_no_allocation_is() {
        let (mut heaps, site) = heaps();
        let maps = heaps.sites.id(vec![]);
        let area = Allocated { process: 1, time_ns: 1, address: AT, size: 4 << 20, is_kept: true };
        heaps.mapped(&area, maps);
        assert_eq!(at(&heaps, 1, AT + (1 << 20)), Some(AT));
        allocate(&mut heaps, site, AT + 4096, 64, 2);
        assert_eq!(at(&heaps, 1, AT + 4100), Some(AT + 4096), "the allocation in it");
        assert!(
            heaps.had_small(1, AT, AT + (4 << 20)) && !heaps.had_small(1, AT + (1 << 20), AT + (4 << 20))
        );
        heaps.unmapped(1, AT, 1 << 20, 3);
        assert_eq!(at(&heaps, 1, AT + (1 << 20) - 4096), None);
        assert_eq!(at(&heaps, 1, AT + (2 << 20)), Some(AT + (1 << 20)), "the rest of it");
        heaps.forked(2, 1, 4);
        heaps.unmapped(1, AT, 4 << 20, 5);
        assert_eq!(
            (at(&heaps, 1, AT + (2 << 20)), at(&heaps, 2, AT + (2 << 20))),
            (None, Some(AT + (1 << 20)))
        );
    }

    #[test]
    fn lifetimes_are_those_of_what_ended_and_of_what_lives_at_the_end() {
        let (mut heaps, site) = heaps();
        allocate(&mut heaps, site, AT, 100, 10);
        allocate(&mut heaps, site, AT + 112, 100, 20);
        heaps.freed(1, AT, 40);
        heaps.end(100);
        let known = heaps.sites.get(site);
        assert_eq!((known.total_bytes, known.lived, known.lifetimes_ns), (200.0, 2.0, 110.0));
    }

    #[test]
    fn memory_is_bounded() {
        let (mut heaps, site) = heaps();
        for count in 0..MOST_LIVE as u64 + 10 {
            allocate(&mut heaps, site, AT + 64 * count, 32, 1);
        }
        assert_eq!((heaps.live, heaps.left_out), (MOST_LIVE, 10));
        assert!(heaps.is_nearly_full());
        heaps.lowered(u32::MAX / 2, 2);
        assert!(!heaps.is_nearly_full());
    }
}
