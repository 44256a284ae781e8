//! Placements, and every node against every node.

use super::cells;
use records::machine::{Machine, PlacementKind};
use std::fmt::Write;

pub(super) fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.numa.as_ref()?.result.as_ref()?;
    let mut text = String::from(
        "what,from,to,ns,ns_lo,ns_hi,parallel_ns,parallel_ns_lo,parallel_ns_hi,bytes_per_s,bytes_per_s_lo,bytes_per_s_hi\n",
    );
    for p in &result.placements {
        let what = match p.kind {
            PlacementKind::Local => "local",
            PlacementKind::Remote => "remote",
            PlacementKind::Interleaved => "interleaved",
            PlacementKind::Off => "off",
        };
        let nodes: Vec<String> = p.nodes.iter().map(u32::to_string).collect();
        let (to, latency) = (nodes.join(" "), cells(&p.latency.ns));
        let _ = writeln!(text, "{what},{},{to},{latency},{},,,", result.local, cells(&p.parallel.ns));
    }
    for p in &result.matrix {
        let (latency, rate) = (cells(&p.latency.ns), cells(&p.read_rate));
        let _ = writeln!(text, "matrix,{},{},{latency},,,,{rate}", p.from, p.to);
    }
    Some(text)
}
