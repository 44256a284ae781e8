//! Placements and the matrix of nodes.

use super::Results;
use crate::figures::table::row;
use crate::figures::{cells, figure, table, trouble};
use records::machine::{Machine, Numa, PlacementKind};
use std::fmt::Write;

pub(super) const RESULTS: Results = Results { name: "numa", title: "NUMA", lines, csv };

fn lines(machine: &Machine, width: usize) -> Option<String> {
    let outcome = machine.experiments.numa.as_ref()?;
    let mut text = String::new();
    if let Some(result) = &outcome.result {
        text.push_str(&placements(result, width));
        text.push_str(&matrix(result, width));
        text.extend(result.left_out.iter().map(|l| format!("  left out: {l}\n")));
    }
    text.push_str(&trouble("numa", Some(outcome)).map(|l| format!("  {l}\n")).unwrap_or_default());
    Some(text)
}

fn placements(result: &Numa, width: usize) -> String {
    let mut rows =
        vec![row(["memory on", "ns", "ns with many under way", "under way", "effective parallelism", ""])];
    for p in &result.placements {
        let nodes: Vec<String> = p.nodes.iter().map(u32::to_string).collect();
        let nodes = nodes.join(", ");
        rows.push(vec![
            match p.kind {
                PlacementKind::Local => format!("this node ({nodes})"),
                PlacementKind::Remote => format!("node {nodes}"),
                PlacementKind::Interleaved => format!("nodes {nodes} in turn"),
                PlacementKind::Off => "the node that touched it first".to_owned(),
            },
            figure(&p.latency.ns),
            figure(&p.parallel.ns),
            figure(&p.parallelism),
            p.effective.as_ref().map_or(String::new(), figure),
            if p.as_asked { "" } else { "its pages lie elsewhere" }.to_owned(),
        ]);
    }
    table::draw(&rows, width)
}

fn matrix(result: &Numa, width: usize) -> String {
    let mut from: Vec<u32> = result.matrix.iter().map(|p| p.from).collect();
    let mut to: Vec<u32> = result.matrix.iter().map(|p| p.to).collect();
    for nodes in [&mut from, &mut to] {
        nodes.sort_unstable();
        nodes.dedup();
    }
    if from.is_empty() {
        return String::new();
    }
    let mut head = row(["ns from"]);
    head.extend(to.iter().map(|n| format!("to node {n}")));
    let mut rows = vec![head];
    for &a in &from {
        let mut cells = vec![format!("node {a}")];
        cells.extend(to.iter().map(|&b| {
            let pair = result.matrix.iter().find(|p| p.from == a && p.to == b);
            pair.map_or_else(|| "-".to_owned(), |p| figure(&p.latency.ns))
        }));
        rows.push(cells);
    }
    format!("\n{}", table::draw(&rows, width))
}

/// Placements, and every node against every node.
fn csv(machine: &Machine) -> Option<String> {
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
