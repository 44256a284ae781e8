//! Rule R18: no way through scavengers is without end between two yields. In a unit's graph every
//! cycle meets one, or budget for none; and so does every way from where the unit is entered to
//! where it calls or goes elsewhere. Together that holds for cycles through several units.

/// No processor known retires more instructions in a cycle.
const WIDEST: u64 = 8;

/// An instruction in the graph.
#[derive(Clone, Copy, Default)]
pub(crate) struct Node {
    /// The code inserted before it yields, or has budget for not doing so, or goes home.
    pub(crate) met: bool,
    pub(crate) charge: Option<u32>,
    /// It calls or goes to a twin's entry.
    pub(crate) out: bool,
    pub(crate) next: bool,
    /// Others it may go to, in [`Graph::targets`].
    pub(crate) targets: (u32, u32),
}

#[derive(Default)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) targets: Vec<u32>,
    /// Where the unit is entered.
    pub(crate) entries: Vec<u32>,
    /// From each node on that meets nothing: how long the longest way to one that does is, and
    /// whether one leads out.
    ahead: Vec<(u32, bool)>,
    stack: Vec<(u32, u32)>,
}

const UNSEEN: u32 = u32::MAX;
const OPEN: u32 = u32::MAX - 1;

impl Graph {
    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.targets.clear();
        self.entries.clear();
    }

    fn successor(&self, node: u32, nth: u32) -> Option<u32> {
        let it = &self.nodes[node as usize];
        let targets = it.targets.0 + nth.checked_sub(u32::from(it.next)).unwrap_or(u32::MAX / 2);
        match nth {
            0 if it.next => Some(node + 1),
            _ if targets < it.targets.1 => Some(self.targets[targets as usize]),
            _ => None,
        }
    }

    pub(crate) fn successors(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        (0..).map_while(move |nth| self.successor(node, nth))
    }

    /// Tells for each node that breaks the rule what is wrong with it.
    pub(crate) fn check(&mut self, quantum: u32, mut tell: impl FnMut(u32, &'static str)) {
        self.ahead.clear();
        self.ahead.resize(self.nodes.len(), (UNSEEN, false));
        for node in (0..self.nodes.len() as u32).rev() {
            if !self.nodes[node as usize].met && self.ahead[node as usize].0 == UNSEEN {
                if let Some(at) = self.follow(node) {
                    return tell(at, "a cycle without a yield");
                }
            }
        }
        let most = WIDEST * u64::from(quantum);
        for node in 0..self.nodes.len() as u32 {
            let Node { met: true, charge, .. } = self.nodes[node as usize] else { continue };
            let mut way = 0;
            let mut nth = 0;
            while let Some(to) = self.successor(node, nth) {
                nth += 1;
                if !self.nodes[to as usize].met {
                    way = way.max(self.ahead[to as usize].0);
                }
            }
            let way = u64::from(way) + 1;
            if charge.is_some_and(|charge| WIDEST * u64::from(charge) < way) {
                tell(node, "subtracts less from the budget than the path to the next yield costs");
            }
            if way > most {
                tell(node, "the path to the next yield is longer than the quantum");
            }
        }
        for &entry in &self.entries {
            let (way, out) = self.ahead[entry as usize];
            if self.nodes[entry as usize].met {
                continue;
            }
            if out {
                tell(entry, "a path without a yield from an entry to another function");
            }
            if u64::from(way) > most {
                tell(entry, "the path to the first yield is longer than the quantum");
            }
        }
    }

    /// Looks at all that can be reached without a yield; says where a cycle is.
    fn follow(&mut self, from: u32) -> Option<u32> {
        self.stack.clear();
        self.stack.push((from, 0));
        self.ahead[from as usize].0 = OPEN;
        while let Some(&mut (node, ref mut nth)) = self.stack.last_mut() {
            let at = *nth;
            *nth += 1;
            match self.successor(node, at) {
                Some(to) if self.nodes[to as usize].met => {}
                Some(to) => match self.ahead[to as usize].0 {
                    UNSEEN => {
                        self.ahead[to as usize].0 = OPEN;
                        self.stack.push((to, 0));
                    }
                    OPEN => return Some(to),
                    _ => {}
                },
                None => {
                    let mut found = (0, self.nodes[node as usize].out);
                    let mut nth = 0;
                    while let Some(to) = self.successor(node, nth) {
                        nth += 1;
                        if !self.nodes[to as usize].met {
                            let (way, out) = self.ahead[to as usize];
                            found = (found.0.max(way), found.1 | out);
                        }
                    }
                    self.ahead[node as usize] = (found.0 + 1, found.1);
                    self.stack.pop();
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes that fall through; (node, where it may go besides), met ones with their charges.
    fn said(
        count: u32,
        branches: &[(u32, u32)],
        met: &[(u32, u32)],
        out: &[u32],
    ) -> Vec<(u32, &'static str)> {
        let mut graph = Graph::default();
        for node in 0..count {
            let begin = graph.targets.len() as u32;
            graph.targets.extend(branches.iter().filter(|branch| branch.0 == node).map(|branch| branch.1));
            let charge = met.iter().find(|met| met.0 == node).map(|met| met.1);
            graph.nodes.push(Node {
                met: charge.is_some(),
                charge,
                out: out.contains(&node),
                next: node + 1 < count,
                targets: (begin, graph.targets.len() as u32),
            });
        }
        graph.entries.push(0);
        let mut found = Vec::new();
        graph.check(10, |at, what| found.push((at, what)));
        found
    }

    #[test]
    fn cycles_and_ways_out() {
        assert_eq!(said(5, &[], &[], &[]), []);
        assert!(matches!(said(5, &[(3, 1)], &[], &[])[..], [(1..=3, "a cycle without a yield")]));
        assert_eq!(said(5, &[(3, 1)], &[(2, 1)], &[]), []);
        assert_eq!(said(5, &[(3, 1), (2, 2)], &[(3, 1)], &[]), [(2, "a cycle without a yield")]);
        let out = "a path without a yield from an entry to another function";
        assert_eq!(said(5, &[], &[], &[2]), [(0, out)]);
        assert_eq!(said(5, &[], &[(1, 1)], &[2]), []);
        assert_eq!(said(5, &[(0, 3)], &[(1, 1)], &[4]), [(0, out)]);
    }

    #[test]
    fn ways_cost() {
        assert_eq!(said(8, &[], &[(0, 1)], &[]), []);
        let cheap = "subtracts less from the budget than the path to the next yield costs";
        assert_eq!(said(9, &[], &[(0, 1)], &[]), [(0, cheap)]);
        assert_eq!(said(9, &[], &[(0, 1), (8, 1)], &[]), []);
        let long = "the path to the next yield is longer than the quantum";
        assert_eq!(said(81, &[], &[(0, 99)], &[]), [(0, long)]);
    }
}
