//! Between CPUs and between nodes: matrices.

use super::notes;
use crate::figure::heat::{Heat, heat};
use crate::parts::{Cell, Figure, Out, Table};
use crate::text::escape;
use records::machine::{CacheToCache, Numa, PlacementKind};

pub(super) fn figures(c2c: &CacheToCache, out: &mut Out) {
    let mut table =
        Table::with_head("Hand-overs of a line", &["from CPU", "to CPU", "they are", "line's home", "time"]);
    let mut cells = vec![None; c2c.cpus.len() * c2c.cpus.len()];
    let place = |cpu: u32| c2c.cpus.iter().position(|c| *c == cpu);
    for pair in &c2c.pairs {
        table.row(vec![
            Cell::count(u64::from(pair.from)),
            Cell::count(u64::from(pair.to)),
            Cell::text(pair.nearness.words()),
            Cell::html(pair.home.map_or_else(String::new, |node| format!("node {node}"))),
            Cell::quantity(&pair.latency.ns),
        ]);
        if let (Some(row), Some(column)) = (place(pair.from), place(pair.to)) {
            let cell = &mut cells[row * c2c.cpus.len() + column];
            *cell = cell.or(pair.latency.ns.estimate());
        }
    }
    let mut classes =
        Table::with_head("By how close they are", &["they are", "pairs measured", "possible", "time"]);
    for class in &c2c.classes {
        classes.row(vec![
            Cell::text(class.nearness.words()),
            Cell::count(class.pairs_measured as u64),
            Cell::count(class.pairs_possible as u64),
            Cell::quantity(&class.ns),
        ]);
    }
    out.table(&classes);
    if cells.iter().any(Option::is_some) {
        let names: Vec<String> = c2c.cpus.iter().map(u32::to_string).collect();
        let title = "What handing a line to another CPU costs: dark is near".to_owned();
        let svg = heat(&Heat {
            title: title.clone(),
            across: ("to CPU".to_owned(), names.clone()),
            down: ("from CPU".to_owned(), names),
            of: "ns".to_owned(),
            logarithmic: false,
            cells,
        });
        let differs =
            "CPUs under different last-level caches, or in different packages, are far from each other.";
        out.figure(Figure { id: "c2c", title, svg, table, differs });
    } else {
        out.missing("No pair of CPUs could be resolved.");
    }
    let mut table = Table::with_head(
        "False sharing: two counters on one line",
        &["CPUs", "they are", "by", "on lines of their own", "on one line", "times as long"],
    );
    for sharing in &c2c.false_sharing {
        table.row(vec![
            Cell::text(&format!("{} and {}", sharing.cpus[0], sharing.cpus[1])),
            Cell::text(sharing.nearness.words()),
            Cell::text(if sharing.locked { "atomic additions" } else { "plain additions" }),
            Cell::quantity(&sharing.apart.ns),
            Cell::quantity(&sharing.together.ns),
            Cell::quantity(&sharing.price),
        ]);
    }
    out.table(&table);
    notes(&c2c.notes, out);
}

pub(super) fn nodes(numa: &Numa, out: &mut Out) {
    let mut table = Table::with_head(
        "Placements",
        &["placement", "pages as asked", "latency", "each of several at once", "at once"],
    );
    for placement in &numa.placements {
        let kind = match placement.kind {
            PlacementKind::Local => "local",
            PlacementKind::Remote => "remote",
            PlacementKind::Interleaved => "interleaved",
            PlacementKind::Off => "not placed",
        };
        table.row(vec![
            Cell::text(kind),
            Cell::text(if placement.as_asked { "yes" } else { "no" }),
            Cell::quantity(&placement.latency.ns),
            Cell::quantity(&placement.parallel.ns),
            Cell::quantity(&placement.parallelism),
        ]);
    }
    out.table(&table);
    let mut from: Vec<u32> = numa.matrix.iter().map(|p| p.from).collect();
    let mut to: Vec<u32> = numa.matrix.iter().map(|p| p.to).collect();
    for nodes in [&mut from, &mut to] {
        nodes.sort_unstable();
        nodes.dedup();
    }
    let mut cells = vec![None; from.len() * to.len()];
    let mut table =
        Table::with_head("Nodes", &["from node", "to node", "distance claimed", "latency", "one CPU reads"]);
    for pair in &numa.matrix {
        let row = from.iter().position(|n| *n == pair.from).unwrap_or(0);
        let column = to.iter().position(|n| *n == pair.to).unwrap_or(0);
        cells[row * to.len() + column] = pair.latency.ns.estimate();
        table.row(vec![
            Cell::count(u64::from(pair.from)),
            Cell::count(u64::from(pair.to)),
            Cell::quantity(&pair.distance_claimed),
            Cell::quantity(&pair.latency.ns),
            Cell::quantity(&pair.read_rate),
        ]);
    }
    if cells.iter().any(Option::is_some) {
        let title = "What a load from each node's memory costs: dark is near".to_owned();
        let names = |nodes: &[u32]| nodes.iter().map(u32::to_string).collect();
        let svg = heat(&Heat {
            title: title.clone(),
            across: ("memory of node".to_owned(), names(&to)),
            down: ("CPU of node".to_owned(), names(&from)),
            of: "ns".to_owned(),
            logarithmic: false,
            cells,
        });
        let differs =
            "machines differ in how nodes are linked; firmware may split one package into several nodes.";
        out.figure(Figure { id: "numa", title, svg, table, differs });
    }
    out.list(&numa.left_out.iter().map(|n| escape(n)).collect::<Vec<_>>());
}
