//! The fleet probe: each figure with the faults that it gives away.

use super::Results;
use crate::figures::{table, trouble};
use records::machine::{FleetProbe, Machine};

pub(super) const RESULTS: Results = Results { name: "probe", title: "Probe", lines, csv: |_| None };

/// What a figure far from those of its like gives away.
fn about(figure: &str) -> &'static str {
    match figure {
        "core_clock" => "power cap, governor",
        "cache_latency" => "neighbour in the last cache",
        "memory_latency" => "memory speed, NPS, huge pages",
        "memory_spread" => "neighbour's traffic",
        "small_pages_latency" => "pages of the hypervisor",
        "huge_pages" => "huge pages off, memory in fragments",
        "prefetch_gain" => "prefetchers off",
        "bandwidth_one" => "prefetchers off, NPS",
        "bandwidth_all" | "copy_all" => "slow or missing DIMM, memory speed",
        "void_share" => "stolen time, other tasks",
        "node_balance" => "slow or missing DIMM on one node",
        _ => "",
    }
}

fn lines(machine: &Machine, width: usize) -> Option<String> {
    let outcome = machine.experiments.probe.as_ref()?;
    let Some(probe) = &outcome.result else {
        return trouble("probe", Some(outcome)).map(|line| format!("  {line}\n"));
    };
    let mut rows = vec![table::row(["figure", "value", "gives away"])];
    let figures = probe.figures();
    let several = |name: &str| name != "node_balance" || probe.nodes.len() > 1;
    let shown = figures.iter().filter(|(name, _)| several(name));
    rows.extend(shown.map(|(name, quantity)| table::row([name, &quantity.brief(), about(name)])));
    rows.extend(nodes(probe));
    Some(table::draw(&rows, width))
}

fn nodes(probe: &FleetProbe) -> Vec<Vec<String>> {
    let row = |node: &records::machine::ProbedNode| {
        let value = format!("{}, {}", node.bandwidth.brief(), node.latency.ns.brief());
        table::row([&format!("node {} ({} CPUs)", node.node, node.threads), &value, "DIMMs of this node"])
    };
    probe.nodes.iter().map(row).collect()
}
