//! What the prefetchers do.

use super::Results;
use crate::figures::table::row;
use crate::figures::{cells, figure, table, trouble};
use records::machine::{Machine, PrefetchState, Prefetching, Probe};
use std::fmt::Write;
use units::{Bytes, Quantity};

pub(super) const RESULTS: Results = Results { name: "prefetch", title: "Prefetchers", lines, csv };

fn lines(machine: &Machine, width: usize) -> Option<String> {
    let outcome = machine.experiments.prefetch.as_ref()?;
    let mut text = trouble("prefetch", Some(outcome)).map(|l| format!("  {l}\n")).unwrap_or_default();
    let Some(result) = &outcome.result else { return Some(text) };
    for r in &result.revealed {
        text.push_str(&format!(
            "  in {}: {} lines under way at once when ascending, {} when descending; recognised after {} lines\n",
            r.size,
            figure(&r.ahead_forward),
            figure(&r.ahead_backward),
            between(&r.learns_after, |v| format!("{v:.0}")),
        ));
        text.push_str(&format!(
            "    strides: {}; streams: {}; a page boundary costs {} ns\n",
            between(&r.longest_stride, |v| Bytes(v as u64).to_string()),
            between(&r.streams, |v| format!("{v:.0}")),
            figure(&r.page_crossing)
        ));
        for remark in &r.remarks {
            text.push_str(&format!("    {remark}\n"));
        }
    }
    if result.control.switched {
        text.push_str(&states(result, width));
    } else {
        text.push_str(&format!("  prefetchers were not switched: {}\n", result.control.detail));
        if let Some(help) = &result.control.would_help {
            text.push_str(&format!("    would help to see each prefetcher by itself: {help}\n"));
        }
    }
    Some(text)
}

/// At least this, and less than that.
fn between(q: &Quantity, word: impl Fn(f64) -> String) -> String {
    match q.estimate() {
        Some(e) if e.hi > e.value => format!("{} (to {})", word(e.value), word(e.hi)),
        Some(e) => word(e.value),
        None => crate::figures::why(q),
    }
}

/// In the largest area, what the main patterns cost under each state.
fn states(result: &Prefetching, width: usize) -> String {
    let shown = [
        Probe::Random,
        Probe::Forward { lines: 1 },
        Probe::Backward { lines: 1 },
        Probe::Forward { lines: 4 },
        Probe::Run { lines: 2 },
        Probe::Streams { count: 16 },
    ];
    let size = result.states[0].probes.iter().map(|p| p.size).max();
    let mut rows =
        vec![row(["ns a load", "random", "forward", "backward", "4 lines", "pairs", "16 streams"])];
    for PrefetchState { name, probes, .. } in &result.states {
        let mut cells = vec![name.clone()];
        cells.extend(shown.iter().map(|&probe| {
            let point = probes.iter().find(|p| Some(p.size) == size && p.probe == probe);
            point.map_or("-".to_owned(), |p| figure(&p.latency.ns))
        }));
        rows.push(cells);
    }
    table::draw(&rows, width)
}

/// Every pattern under every state of the prefetchers.
fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.prefetch.as_ref()?.result.as_ref()?;
    let mut text = String::from(
        "state,setting,size_bytes,pattern,number,ns,ns_lo,ns_hi,cycles,cycles_lo,cycles_hi,ticks,ticks_lo,ticks_hi,\
         blocks,voided\n",
    );
    for state in &result.states {
        for p in &state.probes {
            let (pattern, number) = p.probe.word();
            let _ = writeln!(
                text,
                "{},{},{},{pattern},{},{},{},{},{},{}",
                state.name,
                state.setting.as_deref().unwrap_or(""),
                p.size.0,
                number.map_or(String::new(), |n| n.to_string()),
                cells(&p.latency.ns),
                cells(&p.latency.cycles),
                cells(&p.latency.ticks),
                p.blocks,
                p.voided
            );
        }
    }
    Some(text)
}
