//! Samples by their stacks: stacks that begin alike share their outer frames, so that a file may be
//! larger than memory. All of it is bounded: what no longer fits is counted without its callers.

use super::StoredError;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// How much memory may still be used.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    left: u64,
    all: u64,
}

impl Budget {
    pub(super) fn of(bytes: u64) -> Self {
        Self { left: bytes, all: bytes }
    }

    /// Something of a file is kept.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), StoredError> {
        match self.left.checked_sub(bytes as u64) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(StoredError::NotRead {
                why: format!("its names and places alone take more than {}", units::Bytes(self.all)),
            }),
        }
    }
}

/// Hashes small numbers fast: the standard library's hasher would take most of the time.
#[derive(Clone, Debug, Default)]
pub(super) struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let product =
            u128::from(self.0.rotate_left(23) ^ number ^ ODD) * u128::from(ODD ^ 0xd1b5_4a32_d192_ed03);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn write_u128(&mut self, number: u128) {
        self.write_u64(number as u64);
        self.write_u64((number >> 64) as u64);
    }
}

pub(super) type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;

/// A node: a location as called by another node's. The first one is the root, outside all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub caller: u32,
    pub location: u32,
}

pub(super) const ROOT: u32 = 0;

/// All stacks of a file, by the numbers of their locations.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    ids: Map<Node, u32>,
    /// By what was sampled below which caller: where its values begin.
    leaves: Map<Node, usize>,
    /// Stacks that were seen, by a hash of what the file calls them.
    known: Map<u128, usize>,
    values: Vec<u64>,
    /// Values of a sample; none are known before the first one.
    columns: Option<usize>,
    /// Samples that lack callers, since there was no space for them.
    pub cut_off: u64,
    /// Samples that name no location.
    pub empty: u64,
    /// A value was below zero, as in the difference of two profiles.
    pub has_negative: bool,
}

/// Bounds: 120 MiB at most.
const MOST_NODES: usize = 1 << 20;
const MOST_LEAVES: usize = 1 << 20;
const MOST_KNOWN: usize = 1 << 20;
/// Values of a sample.
const MOST_COLUMNS: usize = 32;

impl Default for Tree {
    fn default() -> Self {
        let root = Node { caller: ROOT, location: u32::MAX };
        Self {
            nodes: vec![root],
            ids: Map::default(),
            leaves: Map::default(),
            known: Map::default(),
            values: Vec::new(),
            columns: None,
            cut_off: 0,
            empty: 0,
            has_negative: false,
        }
    }
}

impl Tree {
    /// Adds the values to a stack that was seen before under this hash; whether it was.
    pub(super) fn add_known(&mut self, hash: u128, values: &[u64]) -> Result<bool, StoredError> {
        let Some(&at) = self.known.get(&hash) else { return Ok(false) };
        self.add_at(at, values)?;
        Ok(true)
    }

    /// Adds the values to a stack, the innermost location first, and remembers it by this hash.
    pub(super) fn add(
        &mut self,
        hash: Option<u128>,
        stack: &[u32],
        values: &[u64],
        budget: &mut Budget,
    ) -> Result<(), StoredError> {
        let Some((&leaf, callers)) = stack.split_first() else {
            self.empty += 1;
            return Ok(());
        };
        let columns = *self.columns.get_or_insert(values.len());
        if columns > MOST_COLUMNS {
            return Err(StoredError::Damaged { why: format!("its samples have {columns} values each") });
        }
        let mut caller = ROOT;
        for &location in callers.iter().rev() {
            let Some(called) = self.called(Node { caller, location }) else {
                self.cut_off += 1;
                break;
            };
            caller = called;
        }
        let mut node = Node { caller, location: leaf };
        if self.leaves.len() >= MOST_LEAVES && !self.leaves.contains_key(&node) {
            self.cut_off += u64::from(caller != ROOT);
            node.caller = ROOT;
        }
        let at = if let Some(&at) = self.leaves.get(&node) {
            at
        } else {
            budget.take(columns * 8 + size_of::<Node>())?;
            let at = self.values.len();
            self.values.resize(at + columns, 0);
            self.leaves.insert(node, at);
            at
        };
        if let Some(hash) = hash.filter(|_| self.known.len() < MOST_KNOWN) {
            self.known.insert(hash, at);
        }
        self.add_at(at, values)
    }

    fn add_at(&mut self, at: usize, values: &[u64]) -> Result<(), StoredError> {
        if Some(values.len()) != self.columns {
            return Err(StoredError::Damaged {
                why: "its samples do not have as many values each".to_owned(),
            });
        }
        for (sum, &value) in self.values[at..].iter_mut().zip(values) {
            if (value as i64) < 0 {
                self.has_negative = true;
            } else {
                *sum = sum.saturating_add(value);
            }
        }
        Ok(())
    }

    fn called(&mut self, node: Node) -> Option<u32> {
        if let Some(&known) = self.ids.get(&node) {
            return Some(known);
        }
        if self.nodes.len() == MOST_NODES {
            return None;
        }
        let id = self.nodes.len() as u32;
        self.nodes.push(node);
        self.ids.insert(node, id);
        Some(id)
    }

    /// What was sampled below which caller, with its values; in the order of the nodes.
    pub(super) fn leaves(&self) -> Vec<(Node, &[u64])> {
        let columns = self.columns.unwrap_or(0);
        let mut leaves: Vec<_> =
            self.leaves.iter().map(|(&node, &at)| (node, &self.values[at..at + columns])).collect();
        leaves.sort_unstable_by_key(|(node, _)| (node.caller, node.location));
        leaves
    }

    pub(super) fn columns(&self) -> usize {
        self.columns.unwrap_or(0)
    }

    /// The locations of a node and its callers, the innermost first.
    pub(super) fn outwards(&self, from: u32) -> impl Iterator<Item = u32> + '_ {
        let node = |id: u32| (id != ROOT).then(|| self.nodes[id as usize]);
        std::iter::successors(node(from), move |at| node(at.caller)).map(|node| node.location)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_share_their_outer_frames() {
        let (mut tree, mut budget) = (Tree::default(), Budget::of(1 << 20));
        tree.add(Some(1), &[5, 2, 1], &[1, 10], &mut budget).unwrap();
        tree.add(Some(2), &[6, 2, 1], &[2, 20], &mut budget).unwrap();
        assert!(tree.add_known(1, &[3, 30]).unwrap() && !tree.add_known(9, &[1, 1]).unwrap());
        tree.add(None, &[5], &[1, 10], &mut budget).unwrap();
        let leaves = tree.leaves();
        let outwards = |node: &Node| tree.outwards(node.caller).collect::<Vec<u32>>();
        let shown: Vec<_> =
            leaves.iter().map(|(node, values)| (node.location, outwards(node), *values)).collect();
        assert_eq!(
            shown,
            [(5, vec![], &[1_u64, 10][..]), (5, vec![2, 1], &[4, 40]), (6, vec![2, 1], &[2, 20])]
        );
        assert_eq!(tree.nodes.len(), 3, "the root and two callers");
    }

    #[test]
    fn samples_have_as_many_values_each() {
        let (mut tree, mut budget) = (Tree::default(), Budget::of(1 << 20));
        tree.add(None, &[5], &[1, 10], &mut budget).unwrap();
        assert!(tree.add(None, &[5], &[1], &mut budget).is_err());
        assert!(Tree::default().add(None, &[5], &[1; 40], &mut budget).is_err());
        tree.add(None, &[5], &[-1_i64 as u64, 10], &mut budget).unwrap();
        assert!(tree.has_negative);
    }

    #[test]
    fn memory_is_bounded() {
        let (mut tree, mut budget) = (Tree::default(), Budget::of(1 << 30));
        for location in 0..(MOST_NODES as u32 + 1000) {
            tree.add(None, &[7, location], &[1], &mut budget).unwrap();
        }
        assert!(tree.nodes.len() == MOST_NODES && tree.cut_off >= 1000, "{}", tree.cut_off);
        let all: u64 = tree.leaves().iter().map(|(_, values)| values[0]).sum();
        assert_eq!(all, MOST_NODES as u64 + 1000, "no sample is lost");
        let mut little = Budget::of(100);
        assert!(little.take(60).is_ok() && little.take(60).is_err());
    }
}
