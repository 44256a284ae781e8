//! Latency over stride: a row a size, and what the strides reveal.

use super::Results;
use crate::figures::table::row;
use crate::figures::{cells, figure, table, trouble};
use records::machine::{Direction, Machine, Stride, StridePoint};
use std::fmt::Write;
use units::{Bytes, Quantity};

pub(super) const RESULTS: Results = Results { name: "stride", title: "Strides", lines, csv };

/// Intervals that reach further, as a share, are shown.
const WIDE: f64 = 0.05;
/// Sizes that are shown: the table is for a terminal, the record has all.
const ROWS: usize = 5;

fn lines(machine: &Machine, width: usize) -> Option<String> {
    let outcome = machine.experiments.stride.as_ref()?;
    let mut text = trouble("stride", Some(outcome)).map(|l| format!("  {l}\n")).unwrap_or_default();
    let Some(result) = &outcome.result else { return Some(text) };
    text.push_str("  ns per load by stride in bytes, ascending; every line of the area is accessed;\n  ± half the interval, where that is more than 5%\n");
    text.push_str(&grid(result, width));
    text.push_str(&format!(
        "  cache line: {} bytes (claimed: {})\n",
        figure(&result.line),
        figure(&result.line_claimed)
    ));
    for f in result.followed.iter().rev().take(1) {
        text.push_str(&format!(
            "  in {}: strides that prefetchers follow: ascending {}, descending {}; the best one {} times as fast as random reads\n",
            f.size,
            reach(&f.forward),
            reach(&f.backward),
            figure(&f.gain)
        ));
    }
    text.push_str(&format!(
        "  entering a page from its neighbour saves {} ns against entering it from elsewhere\n",
        figure(&result.page_boundary)
    ));
    Some(text)
}

/// `256 bytes`, and where it ends if that is known: `256 bytes (not 512)`.
fn reach(q: &Quantity) -> String {
    match q.estimate() {
        Some(e) => format!("{} (not {})", Bytes(e.value as u64), Bytes(e.hi as u64)),
        None => crate::figures::why(q),
    }
}

/// A figure of a table that has no space for intervals: with the larger half of it where that is
/// wide.
fn short(quantity: &Quantity) -> String {
    let Some(e) = quantity.estimate() else { return "-".to_owned() };
    let half = (e.hi - e.value).max(e.value - e.lo);
    let decimals = usize::from(e.value < 10.0);
    let known = format!("{:.decimals$}", e.value);
    if half > WIDE * e.value { format!("{known}±{half:.decimals$}") } else { known }
}

fn grid(result: &Stride, width: usize) -> String {
    let mut sizes: Vec<Bytes> = result.points.iter().map(|p| p.size).collect();
    sizes.dedup();
    let every = sizes.len().div_ceil(ROWS).max(1);
    let shown: Vec<Bytes> = sizes.iter().rev().step_by(every).rev().copied().collect();
    let mut strides: Vec<Bytes> =
        result.points.iter().filter(|p| p.direction == Direction::Forward).map(|p| p.stride).collect();
    strides.sort();
    strides.dedup();
    // Strides of the command line have no random reads beside them, and are all shown.
    if result.points.iter().any(|p| p.direction == Direction::Random) {
        strides.retain(|s| s.0.is_power_of_two());
    }
    let find = |size: Bytes, direction: Direction, stride: Option<Bytes>| -> String {
        let is = |p: &&StridePoint| {
            p.size == size && p.direction == direction && stride.is_none_or(|s| p.stride == s)
        };
        result.points.iter().find(is).map_or("-".to_owned(), |p| short(&p.latency.ns))
    };
    let mut head = row(["", "random"]);
    head.extend(strides.iter().map(|s| s.0.to_string()));
    let mut rows = vec![head];
    for size in shown {
        let mut cells = vec![size.to_string(), find(size, Direction::Random, None)];
        cells.extend(strides.iter().map(|&s| find(size, Direction::Forward, Some(s))));
        rows.push(cells);
    }
    table::draw(&rows, width)
}

/// Latency over stride and size.
fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.stride.as_ref()?.result.as_ref()?;
    let mut text = String::from(
        "direction,size_bytes,stride_bytes,ns,ns_lo,ns_hi,cycles,cycles_lo,cycles_hi,ticks,ticks_lo,ticks_hi,blocks,voided\n",
    );
    for p in &result.points {
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{}",
            p.direction.word(),
            p.size.0,
            p.stride.0,
            cells(&p.latency.ns),
            cells(&p.latency.cycles),
            cells(&p.latency.ticks),
            p.blocks,
            p.voided
        );
    }
    Some(text)
}
