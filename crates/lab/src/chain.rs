//! Pointer chains: cycles of nodes in an arena, each node holding the address of the next.
//!
//! One arena holds many chains at once, so that blocks of all sizes can be interleaved without rebuilding: a cache
//! line has room for eight pointers, and chains that overlap in lines use different pointers of them. Every chain is
//! walked once after it is built: it must come back to its start after exactly as many steps as it has nodes, so that
//! it is one cycle and not several, and every pointer in it lies in the arena. That check is also what makes running a
//! chase kernel over it sound: nothing writes to a finished arena but kernels that store what they loaded.

mod order;

pub use order::Order;

use crate::arena::{Arena, PageKind, PagesGiven, Placement};
use crate::rng::Rng;
use crate::sys::SysError;
use order::Visits;
use std::sync::Arc;
use units::Bytes;

/// What a chain looks like.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Bytes from the first node's unit to the end of the last one's.
    pub span: Bytes,
    /// Distance of neighbouring nodes' units, a multiple of 8: a word, the cache line, a stride, a page.
    pub pitch: u64,
    /// Nodes lie at a different line of each unit (for units of several lines), so that caches indexed by low address
    /// bits do not collide.
    pub scatter: bool,
    pub order: Order,
}

impl Layout {
    /// One node per cache line, in one random cycle.
    pub fn random(span: Bytes, line: u64) -> Self {
        Self { span, pitch: line, scatter: false, order: Order::Random }
    }

    pub fn nodes(&self) -> u64 {
        (self.span.0 / self.pitch).max(1)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    #[error(transparent)]
    Memory(#[from] SysError),
    #[error("a chain of {nodes} nodes came back after {steps} steps")]
    NotOneCycle { nodes: u64, steps: u64 },
    #[error("the chains do not fit into the arena")]
    NoRoom,
}

/// A finished chain; keeps its arena alive.
#[derive(Clone, Debug)]
pub struct Chain {
    pub layout: Layout,
    start: *mut u8,
    arena: Arc<Arena>,
    visits: Visits,
    slot: usize,
    offset: usize,
}

// SAFETY: a chain is an address in an arena that it keeps alive; a finished arena is only read, or written with what
// was read from the same place.
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

    /// Addresses of `count` nodes spread evenly over the cycle.
    pub fn starts(&self, count: usize) -> Vec<*mut u8> {
        let n = self.nodes();
        (0..count as u64).map(|i| self.address(i * n / count as u64)).collect()
    }

    /// The address of the node that the cycle visits as its `i`th.
    pub fn address(&self, i: u64) -> *mut u8 {
        let offset = self.node_offset(i % self.nodes());
        self.arena.base().wrapping_add(offset)
    }

    fn node_offset(&self, i: u64) -> usize {
        let Layout { pitch, scatter, .. } = self.layout;
        let unit = self.visits.unit(i);
        let line = LINE as u64;
        let shift = if scatter && pitch > line {
            // Any fixed function of the unit serves; a multiplicative hash spreads neighbours well.
            (unit.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % (pitch / line) * line
        } else {
            0
        };
        self.offset + (unit * pitch + shift) as usize + self.slot * 8
    }
}

/// The smallest line that any x86-64 or Arm server has; pointers of several chains share lines of this size.
const LINE: usize = 64;
const SLOTS: usize = LINE / 8;

/// Builds an arena that holds all of these chains, and the chains in the order of their layouts.
pub fn build(
    layouts: &[Layout],
    kind: PageKind,
    placement: &Placement,
    rng: &mut Rng,
) -> Result<Vec<Chain>, ChainError> {
    let (places, size) = assign(layouts);
    let arena = Arc::new(Arena::placed(size, kind, placement)?);
    let mut chains = Vec::with_capacity(layouts.len());
    for (layout, (slot, offset)) in layouts.iter().zip(places) {
        let mut chain = Chain {
            layout: layout.clone(),
            start: std::ptr::null_mut(),
            arena: arena.clone(),
            visits: Visits::new(&layout.order, layout.nodes(), layout.pitch, rng),
            slot,
            offset,
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

/// Gives every layout a pointer slot and a place in the arena, largest first, each where it fits lowest.
///
/// A chain whose pitch is whole lines has its pointers in one slot of eight. One whose pitch is not has them in several:
/// all that are as far apart as the largest common part of pitch and line.
fn assign(layouts: &[Layout]) -> (Vec<(usize, usize)>, Bytes) {
    let reach = |l: &Layout| (l.nodes() * l.pitch).next_multiple_of(4096) as usize;
    let mut by_size: Vec<usize> = (0..layouts.len()).collect();
    by_size.sort_by_key(|&i| std::cmp::Reverse(reach(&layouts[i])));
    let mut used = [0usize; SLOTS];
    let mut places = vec![(0, 0); layouts.len()];
    for i in by_size {
        let pitch = layouts[i].pitch as usize;
        assert!(pitch > 0 && pitch % 8 == 0, "a pitch of {pitch} bytes cuts pointers");
        let apart = common(pitch / 8, SLOTS);
        let top = |used: &[usize; SLOTS], first: usize| {
            (first..SLOTS).step_by(apart).map(|s| used[s]).max().unwrap_or(0)
        };
        let slot = (0..apart).min_by_key(|&s| top(&used, s)).expect("there are slots");
        let offset = top(&used, slot);
        places[i] = (slot, offset);
        for s in (slot..SLOTS).step_by(apart) {
            used[s] = offset + reach(&layouts[i]);
        }
    }
    (places, Bytes(used.into_iter().max().unwrap_or(0) as u64))
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
        // SAFETY: `address` stays inside the arena by the way `assign` sized it, and the arena is not used by any
        // kernel before `build` returns.
        unsafe {
            here.cast::<*mut u8>().write(next);
        }
        here = next;
    }
}

/// Walks the chain: it must close after exactly its number of nodes, and never leave the arena. One walker would wait a
/// memory latency for each node; so many walk a part each, and each must end where the next began. Since none of them
/// meets the chain's start in between, the parts together are one cycle through all nodes.
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
            *at = unsafe { at.cast::<*mut u8>().read() };
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
                layouts.push(Layout { span: Bytes(span), pitch, scatter: i % 2 == 1, order });
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
            Order::Runs { bytes: 4096, descending: true },
            Order::Strided { units: 3, descending: false },
        ];
        for order in orders {
            for (span, pitch) in [(64, 64), (1 << 16, 64), (100_032, 64), (1 << 16, 256), (1 << 18, 4096)] {
                for scatter in [false, true] {
                    let layout = Layout { span: Bytes(span), pitch, scatter, order: order.clone() };
                    let chain = &build_small(std::slice::from_ref(&layout))[0];
                    assert_eq!(chain.nodes(), layout.nodes());
                }
            }
        }
    }

    #[test]
    fn windowed_order_stays_in_its_window() {
        let layout = Layout { span: Bytes(1 << 16), pitch: 64, scatter: false, order: Order::Windowed(4096) };
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
            // SAFETY: both are nodes of the chain, and nothing else uses the arena. Swapping two successors splits it.
            unsafe {
                let (a, b) = (a.cast::<u64>(), b.cast::<u64>());
                a.swap(b);
            }
            assert!(matches!(check(&chain), Err(ChainError::NotOneCycle { .. })), "{size} {i} {j}");
        }
    }
}
