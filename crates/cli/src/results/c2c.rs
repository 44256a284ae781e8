//! Hand-overs between CPUs, as a matrix where they are few, and the price of false sharing.

use super::Results;
use crate::figures::table::row;
use crate::figures::{cells, figure, table, trouble};
use records::machine::{CacheToCache, FalseSharing, Machine};
use std::fmt::Write;

pub(super) const RESULTS: Results = Results { name: "c2c", title: "Cache to cache", lines, csv };

/// A matrix of more CPUs does not fit on a line.
const MATRIX: usize = 8;
/// Pairs of CPUs of which both homes are told.
const HOMES_SHOWN: usize = 8;

fn lines(machine: &Machine, width: usize) -> Option<String> {
    let outcome = machine.experiments.c2c.as_ref()?;
    let mut text = String::new();
    if let Some(result) = &outcome.result {
        text.push_str(&if result.cpus.len() <= MATRIX {
            matrix(result, width)
        } else {
            classes(result, width)
        });
        if result.pairs.len() < result.pairs_possible {
            text.push_str(&format!(
                "  {} of {} pairs were measured, some of each kind\n",
                result.pairs.len(),
                result.pairs_possible
            ));
        }
        text.push_str(&homes(result));
        for f in &result.false_sharing {
            text.push_str(&false_sharing(f));
        }
        text.extend(result.notes.iter().map(|n| format!("  {n}\n")));
    }
    text.push_str(&trouble("c2c", Some(outcome)).map(|l| format!("  {l}\n")).unwrap_or_default());
    Some(text)
}

fn false_sharing(f: &FalseSharing) -> String {
    let what = if f.locked { "atomic additions" } else { "plain additions" };
    let told = if f.apart.ns.estimate().or(f.together.ns.estimate()).is_none() {
        "not resolved".to_owned()
    } else {
        format!(
            "{} ns apart, {} ns on one line: {} times the price",
            figure(&f.apart.ns),
            figure(&f.together.ns),
            figure(&f.price)
        )
    };
    format!("  false sharing, CPU {} and {}, {what}: {told}\n", f.cpus[0], f.cpus[1])
}

/// Pairs that were measured with the line at home on two nodes; the record has all of them.
fn homes(result: &CacheToCache) -> String {
    let mut text = String::new();
    for (n, pair) in result.pairs.iter().enumerate() {
        let earlier = result.pairs[..n].iter();
        let Some(other) = earlier.rev().find(|p| (p.from, p.to) == (pair.from, pair.to)) else { continue };
        let (Some(first), Some(second)) = (other.home, pair.home) else { continue };
        text.push_str(&format!(
            "  CPU {} to {}: {} ns where the line's home is node {first}, {} ns where it is node {second}\n",
            pair.from,
            pair.to,
            figure(&other.latency.ns),
            figure(&pair.latency.ns)
        ));
        if text.lines().count() == HOMES_SHOWN {
            break;
        }
    }
    text
}

fn matrix(result: &CacheToCache, width: usize) -> String {
    let mut cpus = result.cpus.clone();
    cpus.sort_unstable();
    let mut head = row(["ns per transfer"]);
    head.extend(cpus.iter().map(|c| format!("CPU {c}")));
    let mut rows = vec![head];
    for &from in &cpus {
        let mut cells = vec![format!("from CPU {from}")];
        cells.extend(cpus.iter().map(|&to| {
            let pair = result.pairs.iter().find(|p| p.from == from && p.to == to);
            pair.map_or_else(|| "-".to_owned(), |p| figure(&p.latency.ns))
        }));
        rows.push(cells);
    }
    table::draw(&rows, width)
}

fn classes(result: &CacheToCache, width: usize) -> String {
    let mut rows = vec![row(["ns per transfer", "median [lowest, highest]", "pairs"])];
    for class in &result.classes {
        rows.push(vec![
            class.nearness.words().to_owned(),
            figure(&class.ns),
            format!("{} of {}", class.pairs_measured, class.pairs_possible),
        ]);
    }
    table::draw(&rows, width)
}

/// Hand-overs between CPUs, a row a pair; and false sharing.
fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.c2c.as_ref()?.result.as_ref()?;
    let mut text = String::from("what,from,to,nearness,ns,ns_lo,ns_hi,cycles,cycles_lo,cycles_hi,home\n");
    for p in &result.pairs {
        let _ = writeln!(
            text,
            "transfer,{},{},{},{},{},{}",
            p.from,
            p.to,
            p.nearness.words(),
            cells(&p.latency.ns),
            cells(&p.latency.cycles),
            p.home.map_or_else(String::new, |node| node.to_string())
        );
    }
    for f in &result.false_sharing {
        let how = if f.locked { "locked" } else { "plain" };
        for (where_, latency) in [("apart", &f.apart), ("together", &f.together)] {
            let _ = writeln!(
                text,
                "{how} {where_},{},{},{},{},{},",
                f.cpus[0],
                f.cpus[1],
                f.nearness.words(),
                cells(&latency.ns),
                cells(&latency.cycles)
            );
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::machine::Nearness;
    use units::{Latency, Quantity, Unit};

    #[test]
    fn what_was_not_resolved_is_told_once() {
        let nothing = Latency::unresolved("stolen");
        let mut f = FalseSharing {
            cpus: [1, 0],
            nearness: Nearness::Unknown,
            locked: false,
            apart: nothing.clone(),
            together: nothing,
            price: Quantity::unresolved("stolen"),
        };
        assert_eq!(false_sharing(&f), "  false sharing, CPU 1 and 0, plain additions: not resolved\n");
        f.together.ns = Quantity::claimed(5.0, Unit::Nanos);
        assert!(
            false_sharing(&f)
                .ends_with("not resolved ns apart, 5 ns on one line: not resolved times the price\n")
        );
    }
}
