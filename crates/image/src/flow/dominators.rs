//! Which blocks lie on every way to a block. A unit may be entered at several places, so above them
//! all stands a root that is no block.

use crate::flow::cfg::Cfg;

/// No block: above all entries, or not reached at all.
const NONE: u32 = u32::MAX;

/// The dominators of a unit's blocks.
#[derive(Clone, Debug, Default)]
pub struct Dominators {
    /// The closest dominator of each block, or `NONE`.
    above: Vec<u32>,
    /// The place of each block in reverse postorder; `NONE` for what no entry leads to.
    order: Vec<u32>,
    /// Reached blocks in reverse postorder.
    sequence: Vec<u32>,
    /// Blocks an edge leads to from a block that comes later on its depth-first way: every cycle
    /// has one.
    retreated_to: Vec<bool>,
}

impl Dominators {
    pub fn of(cfg: &Cfg) -> Self {
        let mut found = Self::default();
        found.walk(cfg);
        found.solve(cfg);
        found
    }

    /// Depth first from all entries: order, and what is led back to.
    fn walk(&mut self, cfg: &Cfg) {
        #[derive(Clone, Copy, PartialEq)]
        enum Seen {
            No,
            Open,
            Done,
        }
        let count = cfg.blocks.len();
        let mut seen = vec![Seen::No; count];
        let mut postorder = Vec::with_capacity(count);
        let mut path: Vec<(u32, usize)> = Vec::new();
        self.retreated_to = vec![false; count];
        let entries = (0..count).filter(|&block| cfg.blocks[block].is_root);
        for root in entries {
            if seen[root] != Seen::No {
                continue;
            }
            seen[root] = Seen::Open;
            path.push((root as u32, 0));
            while let Some((block, next)) = path.last_mut() {
                let at = *block as usize;
                let Some(edge) = cfg.edges_from(at).get(*next) else {
                    seen[at] = Seen::Done;
                    postorder.push(*block);
                    path.pop();
                    continue;
                };
                *next += 1;
                match seen[edge.to as usize] {
                    Seen::No => {
                        seen[edge.to as usize] = Seen::Open;
                        path.push((edge.to, 0));
                    }
                    Seen::Open => self.retreated_to[edge.to as usize] = true,
                    Seen::Done => {}
                }
            }
        }
        postorder.reverse();
        self.order = vec![NONE; count];
        for (place, &block) in postorder.iter().enumerate() {
            self.order[block as usize] = place as u32;
        }
        self.sequence = postorder;
    }

    /// Cooper, Harvey and Kennedy's way: intersect what is above the predecessors until nothing
    /// changes.
    fn solve(&mut self, cfg: &Cfg) {
        // A block that is its own dominator is one directly below the root.
        self.above = vec![NONE; cfg.blocks.len()];
        let mut known = vec![false; cfg.blocks.len()];
        loop {
            let mut changed = false;
            for &block in &self.sequence {
                let at = block as usize;
                let mut above = cfg.blocks[at].is_root.then_some(NONE);
                for edge in cfg.edges_to(at).filter(|edge| known[edge.from as usize]) {
                    above = Some(above.map_or(edge.from, |other| self.meet(other, edge.from)));
                }
                let Some(above) = above else { continue };
                if !known[at] || self.above[at] != above {
                    known[at] = true;
                    self.above[at] = above;
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    fn meet(&self, mut a: u32, mut b: u32) -> u32 {
        while a != b {
            if a == NONE || b == NONE {
                return NONE;
            }
            if self.order[a as usize] > self.order[b as usize] {
                a = self.above[a as usize];
            } else {
                b = self.above[b as usize];
            }
        }
        a
    }

    /// The closest block on every way to this one.
    pub fn above(&self, block: usize) -> Option<usize> {
        Some(self.above[block]).filter(|&above| above != NONE).map(|above| above as usize)
    }
    /// Whether `a` lies on every way to `b`; a block does on those to itself.
    pub fn dominates(&self, a: usize, b: usize) -> bool {
        let mut at = Some(b);
        while let Some(block) = at {
            if block == a {
                return true;
            }
            at = self.above(block);
        }
        false
    }
    pub fn is_reached(&self, block: usize) -> bool {
        self.order[block] != NONE
    }
    /// Whether some edge leads here that closes a cycle. Every cycle of the graph has such a block.
    pub fn is_led_back_to(&self, block: usize) -> bool {
        self.retreated_to[block]
    }
    /// Reached blocks, each behind all that lead to it but by a cycle.
    pub fn reverse_postorder(&self) -> &[u32] {
        &self.sequence
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::cfg::graph;

    #[test]
    fn of_a_diamond_with_a_loop_and_a_second_entry() {
        // 0 -> 1, 2; 1 -> 3; 2 -> 3; 3 -> 4; 4 -> 3, 5; 6 (an entry) -> 5; 7 is not reached
        let cfg =
            graph(8, &[0, 6], &[(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, 3), (4, 5), (6, 5), (7, 5)]);
        let dominators = Dominators::of(&cfg);
        let above: Vec<Option<usize>> = (0..8).map(|block| dominators.above(block)).collect();
        assert_eq!(above, [None, Some(0), Some(0), Some(0), Some(3), None, None, None]);
        assert!(dominators.dominates(3, 4) && dominators.dominates(0, 4) && !dominators.dominates(4, 5));
        assert!(!dominators.is_reached(7) && dominators.is_reached(5));
        let back: Vec<usize> = (0..8).filter(|&block| dominators.is_led_back_to(block)).collect();
        assert_eq!(back, [3]);
    }

    #[test]
    fn every_cycle_has_a_block_that_is_led_back_to() {
        // Irreducible: 1 and 2 form a cycle that is entered at both.
        let cfg = graph(3, &[0], &[(0, 1), (0, 2), (1, 2), (2, 1)]);
        let dominators = Dominators::of(&cfg);
        assert_eq!((dominators.above(1), dominators.above(2)), (Some(0), Some(0)));
        assert!(dominators.is_led_back_to(1) || dominators.is_led_back_to(2));
    }
}
