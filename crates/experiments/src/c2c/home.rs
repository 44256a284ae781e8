//! Where the lines lie that are handed over: on the node of either CPU. Pure.

use lab::arena::Placement;
use records::host::{Host, Node};

/// Whether lines can be at home on more than one node.
pub(super) fn several_nodes(host: &Host) -> bool {
    host.nodes.iter().filter(|node| has_memory(node)).count() > 1
}

fn has_memory(node: &Node) -> bool {
    node.total.value().is_none_or(|total| total.0 > 0)
}

/// The homes to measure a pair with, that of the first CPU first; one that is left to the kernel
/// where there is only one node, or none is known.
pub(super) fn placements(host: &Host, from: u32, to: u32) -> Vec<Placement> {
    let node = |cpu| host.node_of(cpu).filter(|node| has_memory(node)).map(|node| node.id);
    let mut nodes: Vec<u32> = [node(from), node(to)].into_iter().flatten().collect();
    nodes.dedup();
    if nodes.is_empty() || !several_nodes(host) {
        return vec![Placement::FirstTouch];
    }
    nodes.into_iter().map(|node| Placement::Bind(vec![node])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crews::tests::big_host;

    #[test]
    fn lines_are_at_home_with_either_cpu() {
        let host = big_host();
        assert!(several_nodes(&host));
        let nodes = |from, to| [from, to].map(|cpu| host.node_of(cpu).unwrap().id);
        let far = (0..64).find(|&cpu| host.node_of(cpu).is_some_and(|n| n.id != nodes(0, 0)[0])).unwrap();
        let [near_node, far_node] = nodes(0, far);
        let bind = |node| Placement::Bind(vec![node]);
        assert_eq!(placements(&host, 0, far), [bind(near_node), bind(far_node)]);
        assert_eq!(placements(&host, far, 0), [bind(far_node), bind(near_node)]);
        assert_eq!(placements(&Host::default(), 0, 1), [Placement::FirstTouch]);
    }
}
