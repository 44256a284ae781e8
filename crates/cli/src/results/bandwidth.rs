//! Bandwidth by cache and operation, the platform's maximum, and latency under load.

use super::Results;
use crate::figures::table::row;
use crate::figures::{cells, figure, plot, table, trouble};
use records::machine::{Bandwidth, LoadedCurve, Machine, StreamKind};
use std::fmt::Write;
use units::{Estimate, Quantity, Unit};

pub(super) const RESULTS: Results = Results { name: "bandwidth", title: "Bandwidth", lines, csv };

fn lines(machine: &Machine, width: usize) -> Option<String> {
    let outcome = machine.experiments.bandwidth.as_ref()?;
    let mut text = String::new();
    if let Some(result) = &outcome.result {
        text.push_str(&rates(result, width));
        text.push_str(&format!(
            "  memory: at most {} GB/s ({}); from one CPU {} GB/s ({})\n",
            giga(&result.platform_maximum),
            result.platform_maximum_by,
            giga(&result.single_maximum),
            result.single_maximum_by
        ));
        text.extend(result.loaded.iter().map(|c| curve(c, width)));
        text.extend(result.notes.iter().map(|n| format!("  {n}\n")));
    }
    text.push_str(&trouble("bandwidth", Some(outcome)).map(|l| format!("  {l}\n")).unwrap_or_default());
    Some(text)
}

/// A row for each place and number of threads, a column for each operation.
fn rates(result: &Bandwidth, width: usize) -> String {
    let kinds: Vec<StreamKind> = result.counting.iter().map(|c| c.operation).collect();
    let mut head = row(["GB/s in", "threads"]);
    head.extend(kinds.iter().map(|k| k.word().to_owned()));
    let mut places: Vec<(&str, u32)> =
        result.streams.iter().map(|s| (s.within.as_str(), s.threads)).collect();
    places.sort_by_key(|p| (p.0 == "DRAM", p.0, p.1));
    places.dedup();
    let mut rows = vec![head];
    for (within, threads) in places {
        let mut cells = vec![within.to_owned(), threads.to_string()];
        cells.extend(kinds.iter().map(|&kind| {
            let mut found = result.streams.iter();
            let rate = found.find(|s| s.operation == kind && s.within == within && s.threads == threads);
            rate.map_or_else(String::new, |s| giga(&s.rate))
        }));
        rows.push(cells);
    }
    table::draw(&rows, width)
}

fn curve(curve: &LoadedCurve, width: usize) -> String {
    let points: Vec<(f64, f64)> =
        curve.points.iter().filter_map(|p| Some((p.rate.value()? / 1e9, p.latency.ns.value()?))).collect();
    let streams = if curve.streams == 1 { "CPU" } else { "CPUs" };
    let (Some(first), Some(last)) = (curve.points.first(), curve.points.last()) else { return String::new() };
    let mut text = format!(
        "\n  loaded latency of memory ({} other {streams} {}): {} ns idle, {} ns at {} GB/s\n",
        curve.streams,
        curve.traffic.word(),
        figure(&first.latency.ns),
        figure(&last.latency.ns),
        giga(&last.rate)
    );
    let drawn = plot::log_log(
        &points,
        plot::columns(48, width),
        4,
        |x| format!("{x:.2} GB/s"),
        |y| format!("{y:.0} ns"),
    );
    text.push_str(&drawn);
    text
}

/// Bytes a second as a figure in units of 10^9.
fn giga(rate: &Quantity) -> String {
    let Quantity::Resolved { value, lo, hi, disturbed, .. } = rate else { return figure(rate) };
    let scaled = Estimate::new(value / 1e9, lo / 1e9, hi / 1e9);
    figure(&Quantity::measured(scaled, Unit::BytesPerSecond).disturbed_by(disturbed.clone()))
}

/// Rates of streams, and latency under load, in one table: `loaded` rows have a latency and a
/// pause.
fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.bandwidth.as_ref()?.result.as_ref()?;
    let mut text = String::from(
        "what,operation,within,size_bytes,threads,pause,bytes_per_s,bytes_per_s_lo,bytes_per_s_hi,ns,ns_lo,ns_hi\n",
    );
    for s in &result.streams {
        let operation = s.operation.word();
        let _ = writeln!(
            text,
            "stream,{operation},{},{},{},,{},,,",
            s.within,
            s.size.0,
            s.threads,
            cells(&s.rate)
        );
    }
    for curve in &result.loaded {
        for p in &curve.points {
            let pause = p.pause.map_or(String::new(), |p| p.to_string());
            let streams = if p.pause.is_some() { curve.streams } else { 0 };
            let _ = writeln!(
                text,
                "loaded,{},DRAM,,{streams},{pause},{},{}",
                curve.traffic.word(),
                cells(&p.rate),
                cells(&p.latency.ns)
            );
        }
    }
    Some(text)
}
