//! What a guest with two NUMA nodes recorded of its memory's placement; scripts/test-numa.sh boots
//! it and runs these.
//!
//! Nothing here looks at a time: the guest's processor is emulated.

use records::host::Host;
use records::machine::{Machine, Numa, PlacementKind, Status};
use std::path::PathBuf;
use units::Quantity;

fn record(name: &str) -> PathBuf {
    let directory = std::env::var_os("GLEANER_GUEST_RECORDS").expect("run by scripts/test-numa.sh");
    PathBuf::from(directory).join(name)
}

fn machine() -> Machine {
    records::read::<Machine>(&record("machine.json")).unwrap_or_else(|e| panic!("{e}")).body
}

fn numa(machine: &Machine) -> &Numa {
    let outcome = machine.experiments.numa.as_ref().expect("numa was asked for");
    assert_eq!(outcome.status, Status::Done, "{:?}", outcome.why);
    outcome.result.as_ref().expect("a result")
}

fn two_nodes(host: &Host) {
    assert_eq!(host.nodes.iter().map(|n| n.id).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(host.nodes[0].cpus, "0-1".parse().unwrap());
    assert_eq!(host.nodes[1].cpus, "2-3".parse().unwrap());
    assert_eq!(host.nodes[0].distances.get(), Some(&vec![10, 21]));
}

#[test]
#[ignore = "needs the records of a guest: make test-numa"]
fn both_nodes_are_seen() {
    two_nodes(&machine().host);
    let machine = machine();
    let numa = numa(&machine);
    assert_eq!(numa.nodes, [0, 1]);
    assert_eq!(numa.local, 1, "the last CPU measures");
    assert!(numa.left_out.is_empty(), "{:?}", numa.left_out);
}

#[test]
#[ignore = "needs the records of a guest: make test-numa"]
fn every_placement_is_made_and_pages_lie_where_they_should() {
    let machine = machine();
    let numa = numa(&machine);
    let made: Vec<(PlacementKind, Vec<u32>)> =
        numa.placements.iter().map(|p| (p.kind, p.nodes.clone())).collect();
    assert_eq!(
        made,
        [
            (PlacementKind::Remote, vec![0]),
            (PlacementKind::Local, vec![1]),
            (PlacementKind::Interleaved, vec![0, 1]),
            (PlacementKind::Off, vec![0, 1]),
        ]
    );
    for p in &numa.placements {
        assert!(p.as_asked, "{:?} on {:?}: {:?}", p.kind, p.nodes, p.found);
        assert!(p.found.iter().map(|f| f.pages).sum::<usize>() >= 64, "{:?}", p.found);
        assert!(p.found.iter().all(|f| p.nodes.contains(&(f.node as u32))), "{:?}", p.found);
    }
}

#[test]
#[ignore = "needs the records of a guest: make test-numa"]
fn every_node_is_tried_against_every_node() {
    let machine = machine();
    let pairs: Vec<(u32, u32)> = numa(&machine).matrix.iter().map(|p| (p.from, p.to)).collect();
    assert_eq!(pairs, [(0, 0), (0, 1), (1, 0), (1, 1)]);
    for p in &numa(&machine).matrix {
        assert_eq!(p.distance_claimed.value(), Some(if p.from == p.to { 10.0 } else { 21.0 }));
        assert!(machine.host.nodes[p.from as usize].cpus.contains(p.cpu), "CPU {} is not on its node", p.cpu);
        // Emulated time is worth nothing; but each figure is one, or says why not.
        if let Quantity::Unresolved { unresolved } = &p.latency.ns {
            assert!(!unresolved.is_empty());
        }
    }
}
