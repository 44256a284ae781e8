//! Natural loops: a block that dominates the source of an edge to it, and all from where that edge
//! is reached without passing it. Cycles that are entered at several places are none, and are only
//! told by [`Dominators::is_led_back_to`].

use crate::flow::cfg::{Cfg, Edge};
use crate::flow::dominators::Dominators;

/// A natural loop; those with one header are one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    pub header: u32,
    /// All its blocks, ascending, those of inner loops included.
    pub body: Vec<u32>,
    /// The edges that leave it.
    pub exits: Vec<Edge>,
    /// The loop around it, as an index.
    pub parent: Option<u32>,
    /// 1 for an outermost one.
    pub depth: u32,
}

impl Loop {
    pub fn holds(&self, block: u32) -> bool {
        self.body.binary_search(&block).is_ok()
    }
}

/// The loops of a unit, outer before inner.
#[derive(Clone, Debug, Default)]
pub struct Loops {
    pub all: Vec<Loop>,
    /// The innermost loop around each block.
    innermost: Vec<Option<u32>>,
}

impl Loops {
    pub fn of(cfg: &Cfg, dominators: &Dominators) -> Self {
        let count = cfg.blocks.len();
        let mut all: Vec<Loop> = Vec::new();
        let mut in_body = vec![u32::MAX; count];
        for header in 0..count {
            if !dominators.is_led_back_to(header) {
                continue;
            }
            // First those that lead back to the header.
            let mut work: Vec<u32> = cfg
                .edges_to(header)
                .map(|edge| edge.from)
                .filter(|&from| {
                    dominators.is_reached(from as usize) && dominators.dominates(header, from as usize)
                })
                .collect();
            if work.is_empty() {
                continue;
            }
            let mark = header as u32;
            let mut body = vec![mark];
            in_body[header] = mark;
            while let Some(block) = work.pop() {
                if std::mem::replace(&mut in_body[block as usize], mark) == mark {
                    continue;
                }
                body.push(block);
                let before = cfg.edges_to(block as usize).map(|edge| edge.from);
                work.extend(before.filter(|&from| dominators.is_reached(from as usize)));
            }
            body.sort_unstable();
            let leaves = |edge: &&Edge| in_body[edge.to as usize] != mark;
            let exits = body
                .iter()
                .flat_map(|&block| cfg.edges_from(block as usize).iter().filter(leaves).copied())
                .collect();
            all.push(Loop { header: mark, body, exits, parent: None, depth: 1 });
        }
        // Of two loops with different headers one lies in the other, or they share nothing.
        all.sort_by_key(|l| (std::cmp::Reverse(l.body.len()), l.header));
        let mut innermost: Vec<Option<u32>> = vec![None; count];
        for index in 0..all.len() {
            let parent = innermost[all[index].header as usize];
            all[index].parent = parent;
            all[index].depth = parent.map_or(1, |parent| all[parent as usize].depth + 1);
            for &block in &all[index].body {
                innermost[block as usize] = Some(index as u32);
            }
        }
        Self { all, innermost }
    }

    /// The innermost loop around a block.
    pub fn around(&self, block: usize) -> Option<&Loop> {
        self.innermost[block].map(|index| &self.all[index as usize])
    }
    /// How many loops lie around a block.
    pub fn depth(&self, block: usize) -> u32 {
        self.around(block).map_or(0, |l| l.depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::cfg::graph;

    #[test]
    fn nested_loops_and_their_exits() {
        // 0 -> 1 (outer) -> 2 (inner) -> 2, 3; 3 -> 1, 4; 2 -> 5 leaves both
        let cfg = graph(6, &[0], &[(0, 1), (1, 2), (2, 2), (2, 3), (3, 1), (3, 4), (2, 5)]);
        let loops = Loops::of(&cfg, &Dominators::of(&cfg));
        assert_eq!(loops.all.len(), 2);
        let (outer, inner) = (&loops.all[0], &loops.all[1]);
        assert_eq!((outer.header, outer.depth, outer.parent), (1, 1, None));
        assert_eq!(outer.body, [1, 2, 3]);
        assert_eq!((inner.header, inner.depth, inner.parent), (2, 2, Some(0)));
        let ends = |l: &Loop| l.exits.iter().map(|edge| (edge.from, edge.to)).collect::<Vec<_>>();
        assert_eq!(ends(outer), [(2, 5), (3, 4)]);
        assert_eq!(ends(inner), [(2, 3), (2, 5)]);
        assert_eq!([0, 1, 2, 3, 4].map(|block| loops.depth(block)), [0, 1, 2, 1, 0]);
        assert!(outer.holds(3) && !inner.holds(3));
    }

    #[test]
    fn two_edges_back_make_one_loop_and_irreducible_cycles_none() {
        let cfg = graph(4, &[0], &[(0, 1), (1, 2), (2, 1), (2, 3), (3, 1)]);
        let loops = Loops::of(&cfg, &Dominators::of(&cfg));
        assert_eq!(loops.all.len(), 1);
        assert_eq!(loops.all[0].body, [1, 2, 3]);
        let cfg = graph(3, &[0], &[(0, 1), (0, 2), (1, 2), (2, 1)]);
        assert!(Loops::of(&cfg, &Dominators::of(&cfg)).all.is_empty());
    }
}
