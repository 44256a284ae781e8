//! What a register holds on entry to a block, looking back over joins of the control flow. Units
//! have been seen with thousands of indirect jumps; so what is found out about a block is kept, and
//! what a search may look at is bounded.

use super::Search;
use crate::code::symbolic::Node;
use crate::flow::cfg::Cfg;
use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};

pub(super) const DEEPEST_SEARCH: usize = 4;
const MOST_BLOCKS: usize = 200;
/// Interpreters come back to one place from some thousand others.
const MOST_EDGES: usize = 20_000;

/// What a block leaves in a register, as far as anybody asks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Constant(u64),
    /// What this one held at the block's start.
    Register(u8),
    /// Something of at most 32 bits.
    Narrow,
    Other,
}

/// Block, register, how many of its low bits are asked for, and how deep the search may still go.
type Question = (usize, u8, u8, usize);

pub(super) struct Back {
    left: Vec<OnceCell<[Left; 16]>>,
    bounds: RefCell<HashMap<Question, Option<u64>>>,
}

impl Back {
    pub(super) fn of(cfg: &Cfg) -> Self {
        Self { left: vec![OnceCell::new(); cfg.blocks.len()], bounds: RefCell::default() }
    }
}

impl Search<'_, '_> {
    /// The largest value the low bits of a register can have on entry to a block, over all ways in.
    pub(super) fn bound_on_entry(&self, block: usize, register: u8, bits: u8, depth: usize) -> Option<u64> {
        let depth = depth.checked_sub(1)?;
        if self.is_entry(block) {
            return None;
        }
        let question = (block, register, bits, depth);
        if let Some(&known) = self.back.bounds.borrow().get(&question) {
            return known;
        }
        let found = self.bound_over_edges(question);
        self.back.bounds.borrow_mut().insert(question, found);
        found
    }

    fn bound_over_edges(&self, (block, register, bits, depth): Question) -> Option<u64> {
        let mut largest = 0;
        for edge in self.cfg.edges_to(block) {
            let way = self.way_to(edge.from as usize);
            let mut path = self.walk(&way, Some(edge), &[None; 16]);
            let whole = path.register(register);
            let term = path.zext(whole, bits);
            let bound = match (path.bound(term), path.node(term)) {
                (Some(bound), _) => bound,
                (None, Node::Initial(earlier)) => self.bound_on_entry(way[0], earlier, 64, depth)?,
                (None, Node::Zext(inner, bits)) => match path.node(inner) {
                    Node::Initial(earlier) => self.bound_on_entry(way[0], earlier, bits, depth)?,
                    _ => return None,
                },
                _ => return None,
            };
            largest = largest.max(bound);
        }
        Some(largest)
    }

    /// Whether, on every way into a block, the register was last written as a 32-bit one.
    pub(super) fn upper_half_is_zero(&self, block: usize, register: u8) -> bool {
        let is_narrow = |left| match left {
            Left::Narrow => Some(()),
            Left::Constant(value) if value >> 32 == 0 => Some(()),
            _ => None,
        };
        self.on_every_way_in(block, register, is_narrow).is_some()
    }

    /// The constant that a register holds on every way into a block.
    pub(super) fn constant_on_entry(&self, block: usize, register: u8) -> Option<u64> {
        self.on_every_way_in(block, register, |left| match left {
            Left::Constant(value) => Some(value),
            _ => None,
        })
    }

    /// Looks back from a block for what was last put in a register; every way must give the same
    /// answer.
    fn on_every_way_in<T: PartialEq>(
        &self,
        block: usize,
        register: u8,
        fact: impl Fn(Left) -> Option<T>,
    ) -> Option<T> {
        let mut answer = None;
        let mut waiting = vec![(block, register)];
        let mut seen = HashSet::from([(block, register)]);
        let mut edges = 0;
        while let Some((block, register)) = waiting.pop() {
            edges += self.cfg.edges_to(block).len();
            if self.is_entry(block) || seen.len() > MOST_BLOCKS || edges > MOST_EDGES {
                return None;
            }
            for edge in self.cfg.edges_to(block) {
                let left = self.left_by(edge.from as usize)[usize::from(register)];
                if let Some(found) = fact(left) {
                    if answer.as_ref().is_some_and(|answer| *answer != found) {
                        return None;
                    }
                    answer = Some(found);
                } else if let Left::Register(earlier) = left {
                    let from = (edge.from as usize, earlier);
                    if seen.insert(from) {
                        waiting.push(from);
                    }
                } else {
                    return None;
                }
            }
        }
        answer
    }

    /// Where control comes from is not known, or not all of it.
    fn is_entry(&self, block: usize) -> bool {
        self.cfg.blocks[block].is_root || self.cfg.edges_to(block).len() == 0
    }

    /// What a block leaves in all registers, by whichever edge it is left.
    fn left_by(&self, block: usize) -> &[Left; 16] {
        self.back.left[block].get_or_init(|| {
            let path = self.walk(&[block], None, &[None; 16]);
            std::array::from_fn(|register| {
                let term = path.register(register as u8);
                match path.node(term) {
                    Node::Constant(value) => Left::Constant(value),
                    Node::Initial(earlier) => Left::Register(earlier),
                    _ if path.significant_bits(term) <= 32 => Left::Narrow,
                    _ => Left::Other,
                }
            })
        })
    }
}
