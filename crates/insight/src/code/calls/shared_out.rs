//! Samples shared out among the nodes of a tree that is known by fewer samples.

use records::profile::CallNode;
use std::collections::{BTreeMap, HashSet};
use units::Svma;

/// Samples of one place.
pub(super) struct Counted {
    pub function: u32,
    /// The load that the core waited for, by its file and address.
    pub load: Option<(u32, Svma)>,
    pub samples: u64,
    pub node: Option<usize>,
}

#[derive(Default)]
pub(super) struct SharedOut {
    /// Samples with a stack, and so with a node.
    pub stacks: Vec<Counted>,
    /// All samples, in the order of their places. Those with a node count there.
    pub all: Vec<Counted>,
}

impl SharedOut {
    /// Counts samples at nodes: those of a function in the proportions of its stacks, what waits
    /// and what computes apart. Without a count of all samples, those with a stack.
    pub(super) fn count(&self, nodes: &mut [CallNode], computed: &HashSet<(u32, Svma)>) {
        let waits = |one: &Counted| one.load.is_some_and(|load| !computed.contains(&load));
        let mut add = |node: usize, samples: u64, waits: bool| {
            nodes[node].samples += samples;
            nodes[node].stall += if waits { samples } else { 0 };
        };
        if self.all.is_empty() {
            for one in &self.stacks {
                add(one.node.expect("a stack has a node"), one.samples, waits(one));
            }
            return;
        }
        let mut stacks: BTreeMap<(u32, bool), Vec<(usize, u64)>> = BTreeMap::new();
        for one in &self.stacks {
            let node = one.node.expect("a stack has a node");
            stacks.entry((one.function, waits(one))).or_default().push((node, one.samples));
        }
        let mut totals: BTreeMap<(u32, bool), u64> = BTreeMap::new();
        for one in &self.all {
            match one.node {
                Some(node) => add(node, one.samples, waits(one)),
                None => *totals.entry((one.function, waits(one))).or_default() += one.samples,
            }
        }
        for ((function, waits), total) in totals {
            let of = |waits: bool| stacks.get(&(function, waits));
            let Some(among) = of(waits).or_else(|| of(!waits)) else { continue };
            let stacked: u64 = among.iter().map(|(_, samples)| samples).sum();
            let mut before = 0;
            for &(node, samples) in among {
                // So that all parts together are the whole.
                let whole = |counted: u64| u128::from(total) * u128::from(counted);
                let up_to = |counted: u64| (whole(counted) / u128::from(stacked)) as u64;
                add(node, up_to(before + samples) - up_to(before), waits);
                before += samples;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(count: usize) -> Vec<CallNode> {
        (0..count).map(|_| CallNode { caller: None, frame: 0, samples: 0, stall: 0 }).collect()
    }

    fn one(function: u32, waits: bool, samples: u64, node: Option<usize>) -> Counted {
        Counted { function, load: waits.then_some((1, Svma(0x10))), samples, node }
    }

    #[test]
    fn all_samples_go_where_stacks_lead() {
        let shared = SharedOut {
            stacks: vec![one(0, true, 3, Some(0)), one(0, true, 1, Some(1)), one(1, false, 1, Some(2))],
            all: vec![
                one(0, true, 70, None),
                one(0, true, 11, None),
                one(0, false, 8, None),
                one(1, false, 5, None),
                one(2, true, 6, Some(3)),
            ],
        };
        let mut found = nodes(4);
        shared.count(&mut found, &HashSet::new());
        let counts: Vec<(u64, u64)> = found.iter().map(|node| (node.samples, node.stall)).collect();
        assert_eq!(counts, [(66, 60), (23, 21), (5, 0), (6, 6)]);
        assert_eq!(counts.iter().map(|(samples, _)| samples).sum::<u64>(), 100);
        let mut computes = nodes(4);
        shared.count(&mut computes, &HashSet::from([(1, Svma(0x10))]));
        assert!(computes.iter().all(|node| node.stall == 0), "{computes:?}");
    }

    #[test]
    fn without_a_count_of_all_stacks_count() {
        let shared = SharedOut { stacks: vec![one(0, true, 3, Some(0))], all: Vec::new() };
        let mut found = nodes(1);
        shared.count(&mut found, &HashSet::new());
        assert_eq!((found[0].samples, found[0].stall), (3, 3));
    }
}
