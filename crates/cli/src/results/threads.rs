//! Several threads at once: what each pays, and which caches are common.

use super::Results;
use crate::figures::table::row;
use crate::figures::{cells, figure, table, trouble};
use records::machine::{Crowd, Machine, Sharing, Threads};
use std::fmt::Write;

pub(super) const RESULTS: Results = Results { name: "threads", title: "Threads", lines, csv };

fn lines(machine: &Machine, width: usize) -> Option<String> {
    let outcome = machine.experiments.threads.as_ref()?;
    let mut text = String::new();
    if let Some(result) = &outcome.result {
        text.push_str(&crowds(result, width));
        for s in &result.sharing {
            text.push_str(&format!("  {}\n", shared(s)));
        }
        text.extend(result.notes.iter().map(|n| format!("  {n}\n")));
    }
    text.push_str(&trouble("threads", Some(outcome)).map(|l| format!("  {l}\n")).unwrap_or_default());
    Some(text)
}

/// A row for each size, a column for each number of threads.
fn crowds(result: &Threads, width: usize) -> String {
    let mut counts: Vec<u32> = result.crowds.iter().map(|c| c.threads).collect();
    counts.sort_unstable();
    counts.dedup();
    let mut head = row(["ns a load in", "each"]);
    head.extend(counts.iter().map(|n| if *n == 1 { "1 thread".to_owned() } else { format!("{n} threads") }));
    let mut rows = vec![head];
    let mut sizes: Vec<&Crowd> = Vec::new();
    for c in &result.crowds {
        if !sizes.iter().any(|s| s.size == c.size) {
            sizes.push(c);
        }
    }
    for of in sizes {
        let mut cells = vec![of.within.clone(), of.size.to_string()];
        cells.extend(counts.iter().map(|n| {
            let crowd = result.crowds.iter().find(|c| c.size == of.size && c.threads == *n);
            crowd.map_or_else(|| "-".to_owned(), |c| figure(&c.latency.ns))
        }));
        rows.push(cells);
    }
    table::draw(&rows, width)
}

fn shared(s: &Sharing) -> String {
    let found = match s.shared {
        Some(true) => "shared",
        Some(false) => "not shared",
        None => "shared or not: not resolved",
    };
    let claim = match (s.claimed, s.shared) {
        (Some(claimed), Some(found)) if claimed != found => "; the host claims the contrary",
        (Some(true), _) => ", as the host claims",
        (Some(false), _) if s.shared.is_some() => ", as the host claims",
        (Some(false), _) => "; the host claims that it is not shared",
        (None, _) => "",
    };
    let [a, b] = s.cpus;
    let claim = if s.shared.is_none() && s.claimed == Some(true) {
        "; the host claims that it is shared"
    } else {
        claim
    };
    format!("{} of CPU {a} and {b}: {found}{claim} (ratio {})", s.level, figure(&s.ratio))
}

/// Latency of each thread, for each size and number of threads.
fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.threads.as_ref()?.result.as_ref()?;
    let mut text = String::from("within,size_bytes,threads,cpu,ns,ns_lo,ns_hi\n");
    for c in &result.crowds {
        for t in &c.per_thread {
            let _ = writeln!(text, "{},{},{},{},{}", c.within, c.size.0, c.threads, t.cpu, cells(&t.ns));
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::machine::{Nearness, SharingTest};
    use units::{Bytes, Estimate, Quantity, Unit};

    #[test]
    fn contradictions_are_said() {
        let mut s = Sharing {
            level: "L3".to_owned(),
            cpus: [1, 0],
            nearness: Nearness::SameLastCache,
            test: SharingTest::HandedOn,
            size: Bytes::mib(4),
            ratio: Quantity::measured(Estimate::new(7.0, 6.0, 8.0), Unit::Ratio),
            shared: Some(false),
            claimed: Some(true),
        };
        assert!(shared(&s).contains("not shared; the host claims the contrary"), "{}", shared(&s));
        s.shared = Some(true);
        assert!(shared(&s).contains("shared, as the host claims"), "{}", shared(&s));
        s.shared = None;
        assert!(shared(&s).contains("not resolved; the host claims that it is shared"), "{}", shared(&s));
    }
}
