//! Pointer chains: cycles of nodes in an arena, each node holding the address of the next.
//!
//! One arena holds many chains at once, so that blocks of all sizes can be interleaved without
//! rebuilding: a cache line has space for eight pointers, and chains that overlap in lines use
//! different pointers of them. Every chain is walked once after it is built: it must come back to
//! its start after exactly as many steps as it has nodes, so that it is one cycle and not several,
//! and every pointer in it lies in the arena. That check is also what makes running a chase kernel
//! over it sound: nothing writes to a finished arena but kernels that store what they loaded.

mod order;

pub use order::Order;

use crate::arena::{Arena, PageKind, PagesGiven, Placement};
use crate::rng::Rng;
use crate::sys::SysError;
use order::Reads;
use std::sync::Arc;
use units::{Bytes, WouldHelp};

/// What a chain looks like.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Bytes from the first node's unit to the end of the last one's.
    pub span: Bytes,
    /// Distance of neighbouring nodes' units, a multiple of 8: a word, the cache line, a stride, a
    /// page.
    pub pitch: u64,
    /// Nodes lie at a different line of each unit (for units of several lines), so that caches
    /// indexed by low address bits do not collide.
    pub scatter: bool,
    /// Leaves out, and gives back, one page of every four (for units of one page): processors that
    /// keep one translation for neighbouring pages, where these are neighbours in memory too, find
    /// none to join.
    pub apart: bool,
    pub order: Order,
}

impl Layout {
    /// One node per cache line, in one random cycle.
    pub fn random(span: Bytes, line: u64) -> Self {
        Self { span, pitch: line, scatter: false, apart: false, order: Order::Random }
    }

    /// Lines that hold nodes.
    pub fn lines(&self) -> u64 {
        (self.span.0 / self.pitch).max(1)
    }

    /// Steps of a lap.
    pub fn nodes(&self) -> u64 {
        self.lines() * if self.order == Order::Rereading { READS_PER_LINE } else { 1 }
    }

    fn reach(&self) -> usize {
        let units = if self.apart {
            self.lines().div_ceil(PAGES_KEPT_PER_GROUP) * PAGES_PER_GROUP
        } else {
            self.lines()
        };
        (units * self.pitch).next_multiple_of(PAGE_BYTES) as usize
    }

    /// How many chains of reread lines can lie on the same pages, each on lines of its own.
    fn lanes(&self) -> usize {
        if self.scatter { (self.pitch.min(PAGE_BYTES) / LINE_BYTES as u64).max(1) as usize } else { 1 }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    #[error(transparent)]
    Memory(#[from] SysError),
    #[error("a pointer chain of {nodes} nodes is not one cycle: it returns to its start after {steps} steps")]
    NotOneCycle { nodes: u64, steps: u64 },
    #[error("the chains do not fit into the arena")]
    NoRoom,
}

impl WouldHelp for ChainError {
    fn would_help(&self) -> Option<&str> {
        if let Self::Memory(error) = self { error.would_help() } else { None }
    }
}

/// A finished chain; keeps its arena alive.
#[derive(Clone, Debug)]
pub struct Chain {
    pub layout: Layout,
    start: *mut u8,
    arena: Arc<Arena>,
    reads: Reads,
    place: ChainPlace,
}

/// Where in its arena a chain lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ChainPlace {
    offset: usize,
    /// Which pointer of each line is the chain's.
    slot: usize,
    /// By how many lines its nodes lie beyond those of the first chain on these pages.
    lane: u64,
}

// SAFETY: a chain is an address in an arena that it keeps alive; a finished arena is only read, or
// written with what was read from the same place.
unsafe impl Send for Chain {}
// SAFETY: as above.
unsafe impl Sync for Chain {}

impl Chain {
    pub fn nodes(&self) -> u64 {
        self.layout.nodes()
    }

    pub fn start(&self) -> *mut u8 {
        self.start
    }

    pub fn pages(&self) -> PagesGiven {
        self.arena.given
    }

    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// The address of the node that the cycle reads as its `i`th.
    pub fn address(&self, i: u64) -> *mut u8 {
        let offset = self.node_offset(i % self.nodes());
        self.arena.base().wrapping_add(offset)
    }

    fn node_offset(&self, i: u64) -> usize {
        let Layout { pitch, scatter, .. } = self.layout;
        let mut slot = self.place.slot;
        let mut unit = self.reads.unit(i);
        if self.layout.order == Order::Rereading {
            slot = (unit / self.layout.lines()) as usize;
            unit %= self.layout.lines();
        }
        let shift = if scatter { place_in_unit(unit, pitch, self.place.lane) } else { 0 };
        if self.layout.apart {
            unit = page_apart(unit);
        }
        self.place.offset + (unit * pitch + shift) as usize + slot * 8
    }
}

/// The smallest line that any x86-64 or Arm server has; pointers of several chains share lines of
/// this size.
const LINE_BYTES: usize = 64;
const SLOTS_PER_LINE: usize = LINE_BYTES / 8;
/// How often a lap of [`Order::Rereading`] comes by each line: once for each pointer that it has
/// space for.
pub const READS_PER_LINE: u64 = SLOTS_PER_LINE as u64;
const PAGE_BYTES: u64 = 4096;
/// Where pages are kept apart, one page in each group of this many is left out...
const PAGES_PER_GROUP: u64 = 4;
/// ...and this many are used.
const PAGES_KEPT_PER_GROUP: u64 = PAGES_PER_GROUP - 1;

/// The byte at which a scattered node's line begins in its unit.
///
/// Caches and TLBs pick a set by low bits of the address, and a set that gets more than its share
/// overflows before the whole is full. So lines are not drawn at random but dealt out: over any
/// stretch of units each line of a page, and each page of a larger unit, comes equally often, and
/// so does each low part of the page's number.
fn place_in_unit(unit: u64, pitch: u64, lane: u64) -> u64 {
    let line = LINE_BYTES as u64;
    let pages = (pitch / PAGE_BYTES).max(1);
    let lines = (pitch.min(PAGE_BYTES) / line).max(1);
    digit_sum(unit, pages) % pages * PAGE_BYTES + (digit_sum(unit, lines) + lane) % lines * line
}

/// Which page of a group is left out: not the same everywhere, so that no set of a buffer goes
/// empty.
fn left_out(group: u64) -> u64 {
    group * PAGES_PER_GROUP + digit_sum(group, PAGES_PER_GROUP) % PAGES_PER_GROUP
}

/// Where the pages lie that are kept apart.
fn page_apart(page: u64) -> u64 {
    let (group, inside) = (page / PAGES_KEPT_PER_GROUP, page % PAGES_KEPT_PER_GROUP);
    let place = group * PAGES_PER_GROUP + inside;
    if place < left_out(group) { place } else { place + 1 }
}

/// The sum of a number's digits. Numbers that differ in one digit only have different ones, so that
/// the units of one set are spread over all places whichever digits choose the set.
fn digit_sum(mut number: u64, base: u64) -> u64 {
    let mut sum = 0;
    while base > 1 && number > 0 {
        sum += number % base;
        number /= base;
    }
    sum
}

/// Builds an arena that holds all of these chains, and the chains in the order of their layouts.
pub fn build(
    layouts: &[Layout],
    kind: PageKind,
    placement: &Placement,
    rng: &mut Rng,
) -> Result<Vec<Chain>, ChainError> {
    let (places, size) = assign(layouts);
    let mut arena = Arena::placed(size, kind, placement)?;
    // The first chain on shared pages is the longest.
    for (layout, place) in layouts.iter().zip(&places).filter(|(l, p)| l.apart && p.lane == 0) {
        for group in 0..layout.lines().div_ceil(PAGES_KEPT_PER_GROUP) {
            arena.drop_page(place.offset + (left_out(group) * PAGE_BYTES) as usize);
        }
    }
    let arena = Arc::new(arena);
    let mut chains = Vec::with_capacity(layouts.len());
    for (layout, place) in layouts.iter().zip(places) {
        let mut chain = Chain {
            layout: layout.clone(),
            start: std::ptr::null_mut(),
            arena: arena.clone(),
            reads: Reads::new(&layout.order, layout.nodes(), layout.pitch, rng),
            place,
        };
        chain.start = chain.address(0);
        link(&chain);
        check(&chain)?;
        chains.push(chain);
    }
    Ok(chains)
}

/// How many bytes an arena for these layouts takes.
pub fn arena_size(layouts: &[Layout]) -> Bytes {
    assign(layouts).1
}

/// Gives every layout its place: chains of reread lines first, as many on the same pages as
/// those have lines; then the others, largest first, each in the pointer slot where it fits lowest.
///
/// A chain whose pitch is whole lines has its pointers in one slot of eight. One whose pitch is not
/// has them in several: all that are as far apart as the largest common part of pitch and line.
fn assign(layouts: &[Layout]) -> (Vec<ChainPlace>, Bytes) {
    let mut by_size: Vec<usize> = (0..layouts.len()).collect();
    by_size.sort_by_key(|&i| std::cmp::Reverse(layouts[i].reach()));
    let (rereading, others): (Vec<usize>, Vec<usize>) =
        by_size.into_iter().partition(|&i| layouts[i].order == Order::Rereading);
    let mut places = vec![ChainPlace::default(); layouts.len()];
    let mut end = 0;
    // Only chains of one pitch share pages: their lanes would cross otherwise.
    let mut shared: Option<((u64, bool), usize, usize)> = None;
    for i in rereading {
        let layout = &layouts[i];
        let alike = (layout.pitch, layout.apart);
        shared = match shared {
            Some((those, offset, lane)) if those == alike && lane + 1 < layout.lanes() => {
                Some((those, offset, lane + 1))
            }
            _ => {
                let offset = end;
                end += layout.reach();
                Some((alike, offset, 0))
            }
        };
        let (_, offset, lane) = shared.expect("just set");
        places[i] = ChainPlace { offset, slot: 0, lane: lane as u64 };
    }
    let mut used = [end; SLOTS_PER_LINE];
    for i in others {
        let pitch = layouts[i].pitch as usize;
        assert!(pitch > 0 && pitch % 8 == 0, "a pitch of {pitch} bytes cuts pointers");
        assert!(!layouts[i].apart, "pages are kept apart for rereading chains only");
        let apart = common(pitch / 8, SLOTS_PER_LINE);
        let top = |used: &[usize; SLOTS_PER_LINE], first: usize| {
            (first..SLOTS_PER_LINE).step_by(apart).map(|s| used[s]).max().unwrap_or(0)
        };
        let slot = (0..apart).min_by_key(|&s| top(&used, s)).expect("there are slots");
        let offset = top(&used, slot);
        places[i] = ChainPlace { offset, slot, lane: 0 };
        for s in (slot..SLOTS_PER_LINE).step_by(apart) {
            used[s] = offset + layouts[i].reach();
        }
    }
    (places, Bytes(used.into_iter().max().unwrap_or(0) as u64))
}

/// A node's address as that of the pointer it holds; nodes lie at multiples of eight bytes.
#[allow(clippy::cast_ptr_alignment)] // checked in the next line
fn pointer_at(node: *mut u8) -> *mut *mut u8 {
    debug_assert_eq!(node as usize % 8, 0);
    node.cast()
}

/// The greatest common divisor.
fn common(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common(b, a % b) }
}

fn link(chain: &Chain) {
    let n = chain.nodes();
    let mut here = chain.address(0);
    for i in 0..n {
        let next = chain.address(i + 1);
        debug_assert!(here as usize - (chain.arena.base() as usize) < chain.arena.len());
        // SAFETY: `address` stays inside the arena by the way `assign` sized it, and the arena is
        // not used by any kernel before `build` returns.
        unsafe {
            pointer_at(here).write(next);
        }
        here = next;
    }
}

/// Walks the chain: it must close after exactly its number of nodes, and never leave the arena. One
/// walker would wait a memory latency for each node, so 32 walkers take a part each, and each must
/// end where the next one began. Since none of them meets the start of the chain in between, the
/// parts together are one cycle through all nodes.
fn check(chain: &Chain) -> Result<(), ChainError> {
    const WALKERS: u64 = 32;
    let n = chain.nodes();
    let base = chain.arena.base() as usize;
    let walkers = if n < WALKERS * 4 { 1 } else { WALKERS };
    let begins: Vec<u64> = (0..=walkers).map(|w| w * n / walkers).collect();
    let mut at: Vec<*mut u8> = begins[..walkers as usize].iter().map(|&i| chain.address(i)).collect();
    let longest = begins.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
    for step in 1..=longest {
        for (w, at) in at.iter_mut().enumerate() {
            let length = begins[w + 1] - begins[w];
            if step > length {
                continue;
            }
            // SAFETY: `at` is checked to lie in the arena (the first by construction).
            *at = unsafe { pointer_at(*at).read() };
            let outside = (*at as usize).wrapping_sub(base).saturating_add(8) > chain.arena.len();
            let last = begins[w + 1] == n && step == length;
            if outside || (*at == chain.start) != last {
                return Err(ChainError::NotOneCycle { nodes: n, steps: begins[w] + step });
            }
        }
    }
    for (w, at) in at.iter().enumerate() {
        if *at != chain.address(begins[w + 1]) {
            return Err(ChainError::NotOneCycle { nodes: n, steps: begins[w + 1] });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_small(layouts: &[Layout]) -> Vec<Chain> {
        build(layouts, PageKind::Small, &Placement::FirstTouch, &mut Rng::new(5)).unwrap()
    }

    #[test]
    fn many_chains_share_one_arena() {
        let layouts: Vec<Layout> = (4..40).map(|i| Layout::random(Bytes(i * 1024), 64)).collect();
        let size = arena_size(&layouts);
        let sum: u64 = layouts.iter().map(|l| l.span.0).sum();
        assert!(size.0 < sum / 4, "{size} for {sum}");
        let chains = build_small(&layouts);
        // Building a later chain must not have broken an earlier one.
        for chain in &chains {
            check(chain).unwrap();
        }
    }

    #[test]
    fn chains_of_any_pitch_share_an_arena() {
        let orders = [
            Order::Random,
            Order::Forward,
            Order::Runs { bytes: 4096, descending: false },
            Order::Strided { units: 5, descending: true },
        ];
        let mut layouts = Vec::new();
        for (i, pitch) in [8, 16, 24, 32, 40, 64, 96, 128, 320, 4096, 4160].into_iter().enumerate() {
            for span in [1 << 13, 1 << 16, 100_000] {
                let order = orders[i % orders.len()].clone();
                layouts.push(Layout { span: Bytes(span), pitch, scatter: i % 2 == 1, apart: false, order });
            }
        }
        let chains = build_small(&layouts);
        for chain in &chains {
            check(chain).unwrap();
        }
    }

    #[test]
    fn all_orders_close() {
        let orders = [
            Order::Random,
            Order::Forward,
            Order::Backward,
            Order::Windowed(4096),
            Order::Rereading,
            Order::Runs { bytes: 4096, descending: true },
            Order::Strided { units: 3, descending: false },
        ];
        for order in orders {
            for (span, pitch) in [(64, 64), (1 << 16, 64), (100_032, 64), (1 << 16, 256), (1 << 18, 4096)] {
                for scatter in [false, true] {
                    let layout =
                        Layout { span: Bytes(span), pitch, scatter, apart: false, order: order.clone() };
                    let chain = &build_small(std::slice::from_ref(&layout))[0];
                    assert_eq!(chain.nodes(), layout.nodes());
                }
            }
        }
    }

    #[test]
    fn rereading_chains_share_pages_but_no_line() {
        let layout = |pages: u64, pitch, scatter| Layout {
            span: Bytes(pages * pitch),
            pitch,
            scatter,
            apart: false,
            order: Order::Rereading,
        };
        let mut layouts: Vec<Layout> = (0..70).map(|i| layout(40 + i, 4096, true)).collect();
        layouts.extend((0..4).map(|i| layout(40 + i, 64, false)));
        layouts.push(Layout::random(Bytes(8192), 64));
        let chains = build_small(&layouts);
        let mut owner = std::collections::HashMap::new();
        for (c, chain) in chains.iter().enumerate() {
            check(chain).unwrap();
            for i in 0..chain.nodes() {
                assert_eq!(*owner.entry(chain.address(i) as usize / LINE_BYTES).or_insert(c), c);
            }
        }
        let lines: u64 = layouts.iter().map(Layout::lines).sum();
        assert_eq!(owner.len() as u64, lines);
        // Two sets of shared pages hold seventy chains.
        assert!(chains[0].arena().len() < (110 + 110 + 20) * 4096, "{}", chains[0].arena().len());
    }

    #[test]
    fn scattered_nodes_fill_all_sets_alike() {
        for pitch in [4096, 8192, 16384, 65536] {
            let places: Vec<u64> =
                (0..4096).map(|unit| unit * pitch + place_in_unit(unit, pitch, 3)).collect();
            // Sets of a cache within a page, and of TLBs of several sizes.
            for (shift, sets) in [(6, 64), (12, 16), (12, 128), (12, 256), (12, 512)] {
                let mut filled = vec![0; sets as usize];
                for place in &places[..sets as usize * 4] {
                    filled[((place >> shift) % sets) as usize] += 1;
                }
                let most = *filled.iter().max().unwrap();
                assert!(most <= 5, "{pitch} {sets}: {most} where 4 are fair");
            }
        }
        assert!((0..1000).all(|unit| place_in_unit(unit, 64, 3) == 0));
    }

    #[test]
    fn pages_apart_leave_a_hole_in_every_group_and_no_set_empty() {
        let pages: Vec<u64> = (0..PAGES_KEPT_PER_GROUP * 4096).map(page_apart).collect();
        assert!(pages.windows(2).all(|w| w[0] < w[1]));
        for group in 0..4096 {
            let left_out = left_out(group);
            assert_eq!(left_out / PAGES_PER_GROUP, group);
            assert!(!pages.contains(&left_out));
        }
        for sets in [16, 64, 128, 256, 512] {
            let mut filled = vec![0; sets];
            for page in &pages[..sets * 12] {
                filled[*page as usize % sets] += 1;
            }
            assert!(filled.iter().all(|f| (11..=13).contains(f)), "{sets}: {filled:?}");
        }
    }

    #[test]
    fn chains_of_pages_apart_close() {
        let layouts: Vec<Layout> = [16, 17, 18, 19, 700]
            .map(|pages| Layout {
                span: Bytes(pages * PAGE_BYTES),
                pitch: PAGE_BYTES,
                scatter: true,
                apart: true,
                order: Order::Rereading,
            })
            .to_vec();
        for chain in build(&layouts, PageKind::Cut, &Placement::FirstTouch, &mut Rng::new(5)).unwrap() {
            check(&chain).unwrap();
            let pages: std::collections::BTreeSet<usize> =
                (0..chain.nodes()).map(|i| (chain.address(i) as usize) / PAGE_BYTES as usize).collect();
            assert_eq!(pages.len() as u64, chain.layout.lines());
        }
    }

    #[test]
    fn windowed_order_stays_in_its_window() {
        let layout = Layout {
            span: Bytes(1 << 16),
            pitch: 64,
            scatter: false,
            apart: false,
            order: Order::Windowed(4096),
        };
        let chain = &build_small(&[layout])[0];
        for i in 0..chain.nodes() - 1 {
            let window = |i| (chain.address(i) as usize) >> 12;
            assert!(window(i) == window(i + 1) || (i + 1) % 64 == 0);
        }
    }

    #[test]
    fn two_cycles_are_found_out() {
        for (size, i, j) in [(4096, 3, 10), (1 << 16, 3, 10), (1 << 16, 3, 900), (1 << 16, 31, 32)] {
            let chain = build_small(&[Layout::random(Bytes(size), 64)]).remove(0);
            check(&chain).unwrap();
            let (a, b) = (chain.address(i), chain.address(j));
            // SAFETY: both are nodes of the chain, and nothing else uses the arena. Swapping two
            // successors splits it.
            unsafe {
                let (a, b) = (pointer_at(a), pointer_at(b));
                a.swap(b);
            }
            assert!(matches!(check(&chain), Err(ChainError::NotOneCycle { .. })), "{size} {i} {j}");
        }
    }
}
