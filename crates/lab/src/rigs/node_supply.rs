//! A chain's cycle as a supply of nodes that several rigs share.
//!
//! Rigs that want every access to miss must not meet lines that another of them has just touched.
//! So all of them take what they need from one place that moves along the cycle: a node comes round
//! again only after all others were used.

use crate::chain::Chain;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Clone, Debug)]
pub struct NodeSupply {
    chain: Chain,
    next: Arc<AtomicU64>,
}

impl NodeSupply {
    pub fn of(chain: Chain) -> Self {
        Self { chain, next: Arc::default() }
    }

    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// Takes this many nodes; the first one's place on the cycle is returned, the others follow it.
    pub(super) fn take(&self, nodes: u64) -> u64 {
        self.next.fetch_add(nodes, Ordering::Relaxed) % self.chain.nodes()
    }

    /// The node at a place, which may lie beyond the end: the cycle goes on from its start.
    pub(super) fn address(&self, place: u64) -> u64 {
        self.chain.address(place) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{PageKind, Placement};
    use crate::chain::{Layout, build};
    use crate::rng::Rng;
    use std::collections::HashSet;
    use units::Bytes;

    #[test]
    fn no_node_is_given_twice_before_all_were() {
        let layout = Layout::random(Bytes(64 << 10), 64);
        let chain =
            build(&[layout], PageKind::Small, &Placement::FirstTouch, &mut Rng::new(1)).unwrap().remove(0);
        let nodes = NodeSupply::of(chain);
        let other = nodes.clone();
        let mut seen = HashSet::new();
        for (i, n) in [100, 7, 500, 417].into_iter().enumerate() {
            let from = if i % 2 == 0 { nodes.take(n) } else { other.take(n) };
            for place in from..from + n {
                assert!(seen.insert(nodes.address(place)));
            }
        }
        assert_eq!(seen.len(), 1024);
        assert_eq!(nodes.take(1), 0);
    }
}
