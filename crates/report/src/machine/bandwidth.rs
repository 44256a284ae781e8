//! Bandwidth, latency under load, and what several threads take from each other.

use super::{notes, plot};
use crate::figure::axis::{Numbers, Scale};
use crate::figure::bars::{Bar, bars};
use crate::figure::plot::{Plot, Series};
use crate::parts::{Cell, Figure, Out, Table};
use crate::text::{escape, label_figures, quantity, size};
use records::machine::{Bandwidth, BusySibling, SiblingPoint, StreamRate, Threads};
use std::collections::BTreeMap;
use units::Latency;

pub(super) fn figures(bandwidth: &Bandwidth, out: &mut Out) {
    out.say(&format!(
        "All CPUs of this run drew at most {} from memory ({}); one alone at most {} ({}).",
        quantity(&bandwidth.platform_maximum),
        escape(&bandwidth.platform_maximum_by),
        quantity(&bandwidth.single_maximum),
        escape(&bandwidth.single_maximum_by)
    ));
    let most = bandwidth.streams.iter().map(|s| s.threads).max().unwrap_or(1);
    let mut table = Table::with_head(
        "Streams",
        &["within", "operation", "threads", "rate", "slowest thread", "fastest thread"],
    );
    for stream in &bandwidth.streams {
        table.row(vec![
            Cell::text(&stream.within),
            Cell::text(stream.operation.word()),
            Cell::count(u64::from(stream.threads)),
            Cell::quantity(&stream.rate),
            Cell::quantity(&stream.slowest_thread),
            Cell::quantity(&stream.fastest_thread),
        ]);
    }
    let shown = |s: &&StreamRate| s.threads == 1 || s.threads == most;
    let drawn: Vec<_> =
        bandwidth.streams.iter().filter(shown).filter(|s| s.within == "DRAM").filter_map(bar).collect();
    let nearer: Vec<_> =
        bandwidth.streams.iter().filter(shown).filter(|s| s.within != "DRAM").filter_map(bar).collect();
    let differs =
        "neighbours draw on the same memory; on other machines one CPU may reach a smaller share of all.";
    if drawn.is_empty() {
        out.missing("No rate of memory could be resolved.");
        out.table(&table);
    } else {
        let title = "What memory moves, by operation".to_owned();
        let svg = bars(&title, "GB/s", &drawn);
        out.figure(Figure { id: "bandwidth", title, svg, table, differs });
    }
    if !nearer.is_empty() {
        let title = "What caches move, by operation".to_owned();
        let svg = bars(&title, "GB/s", &nearer);
        out.figure(Figure { id: "bandwidth-caches", title, svg, table: Table::default(), differs });
    }
    loaded(bandwidth, out);
    notes(&bandwidth.notes, out);
}

fn bar(stream: &StreamRate) -> Option<Bar> {
    let value = stream.rate.estimate()?.scaled(1e-9);
    let threads =
        if stream.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", stream.threads) };
    Some(Bar {
        name: format!("{}, {}, {threads}", stream.within, stream.operation.word()),
        value,
        shown: label_figures(value),
        class: usize::from(stream.threads > 1),
    })
}

fn loaded(bandwidth: &Bandwidth, out: &mut Out) {
    let series = bandwidth.loaded.iter().map(|curve| {
        let points =
            curve.points.iter().filter_map(|p| Some((p.rate.value()? * 1e-9, p.latency.ns.estimate()?)));
        let plural = if curve.streams == 1 { "CPU" } else { "CPUs" };
        Series {
            name: format!("{} by {} {plural}", curve.traffic.word(), curve.streams),
            points: points.collect(),
        }
    });
    let figure = Plot {
        title: "Latency under load: what a load from memory costs while others stream".to_owned(),
        x: ("traffic (GB/s)".to_owned(), Scale::Linear, Numbers::Plain),
        y: ("time of a load (ns)".to_owned(), Scale::Linear),
        series: series.collect(),
        marks: Vec::new(),
    };
    let differs =
        "with few CPUs memory is not saturated and the curve stays flat; writes cost more than reads.";
    if bandwidth.loaded.is_empty() {
        out.missing("Latency under load: not measured; it needs a second CPU.");
    } else {
        plot(out, "loaded", figure, differs);
    }
}

pub(super) fn sibling(found: &BusySibling, out: &mut Out) {
    let [home, sibling] = found.cpus;
    let of = |name: String, latency: fn(&SiblingPoint) -> &Latency| Series {
        name,
        points: found
            .points
            .iter()
            .filter_map(|point| Some((point.size.0 as f64, latency(point).ns.estimate()?)))
            .collect(),
    };
    let figure = Plot {
        title: "A busy sibling makes shared caches look smaller".to_owned(),
        x: ("memory of each hyperthread".to_owned(), Scale::Log, Numbers::Bytes),
        y: ("time of a load (ns)".to_owned(), Scale::Log),
        series: vec![
            of(format!("CPU {home} alone"), |point| &point.alone),
            of(format!("while CPU {sibling} chases, too"), |point| &point.beside),
        ],
        marks: Vec::new(),
    };
    let differs = "a kernel or a hypervisor may name siblings that are none: then both lines are one.";
    plot(out, "smt", figure, differs);
}

pub(super) fn threads(threads: &Threads, out: &mut Out) {
    let mut by_size: BTreeMap<u64, Series> = BTreeMap::new();
    let mut table = Table::with_head(
        "Crowds",
        &["within", "each thread's memory", "threads", "latency", "against one alone"],
    );
    for crowd in &threads.crowds {
        let series = by_size.entry(crowd.size.0).or_insert_with(|| Series {
            name: format!("{} each ({} alone)", size(crowd.size.0 as f64), crowd.within),
            points: Vec::new(),
        });
        series.points.extend(crowd.latency.ns.estimate().map(|e| (f64::from(crowd.threads), e)));
        table.row(vec![
            Cell::text(&crowd.within),
            Cell::sorted(size(crowd.size.0 as f64), crowd.size.0 as f64),
            Cell::count(u64::from(crowd.threads)),
            Cell::quantity(&crowd.latency.ns),
            Cell::quantity(&crowd.slowdown),
        ]);
    }
    let figure = Plot {
        title: "Threads beside each other: what is shared shows as a rise".to_owned(),
        x: ("threads at once".to_owned(), Scale::Linear, Numbers::Whole),
        y: ("time of a load (ns)".to_owned(), Scale::Log),
        series: by_size.into_values().collect(),
        marks: Vec::new(),
    };
    let differs =
        "where CPUs have caches of their own, lines are flat; two hardware threads of one core share all.";
    plot(out, "threads", figure, differs);
    out.table(&table);
    let mut table =
        Table::with_head("Which caches are shared", &["level", "CPUs", "ratio", "measured", "claimed"]);
    let word = |yes: Option<bool>, none: &str| match yes {
        Some(true) => Cell::text("shared"),
        Some(false) => Cell::text("not shared"),
        None => Cell::text(none),
    };
    for sharing in &threads.sharing {
        table.row(vec![
            Cell::text(&sharing.level),
            Cell::text(&format!("{} and {}", sharing.cpus[0], sharing.cpus[1])),
            Cell::quantity(&sharing.ratio),
            word(sharing.shared, "not conclusive"),
            word(sharing.claimed, "nothing"),
        ]);
    }
    out.table(&table);
    notes(&threads.notes, out);
}
