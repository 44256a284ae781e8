//! Translation buffers: a row for each.

use super::Results;
use crate::figures::table::row;
use crate::figures::{cells, figure, table, trouble};
use records::machine::{AfterMiss, Machine, Tlb};
use std::fmt::Write;
use units::Quantity;

pub(super) const RESULTS: Results = Results { name: "tlb", title: "TLBs", lines, csv };

fn lines(machine: &Machine, width: usize) -> Option<String> {
    let outcome = machine.experiments.tlb.as_ref()?;
    let mut text = trouble("tlb", Some(outcome)).map(|line| format!("  {line}\n")).unwrap_or_default();
    let Some(result) = &outcome.result else { return Some(text) };
    let mut rows = vec![row(["", "pages", "entries", "claimed", "miss, cycles", "ns", "then"])];
    let mut notes = String::new();
    for kind in &result.kinds {
        let pages = &kind.pages.asked;
        for level in &kind.levels {
            rows.push(vec![
                format!("L{} dTLB", level.level),
                pages.clone(),
                figure(&level.entries),
                level.claimed.value().map_or("-".to_owned(), |v| format!("{v:.0}")),
                figure(&level.miss.cycles),
                figure(&level.miss.ns),
                match level.then {
                    AfterMiss::NextLevel => "next level",
                    AfterMiss::Walk => "page walk",
                    AfterMiss::Unknown => "",
                }
                .to_owned(),
            ]);
            if let Quantity::Unresolved { unresolved } = &level.entries {
                notes.push_str(&format!(
                    "  L{} dTLB, {pages} pages: not resolved: {unresolved}\n",
                    level.level
                ));
            }
        }
        if kind.levels.is_empty() {
            let most = kind.points.iter().map(|p| p.pages).max().unwrap_or(0);
            notes.push_str(&format!("  {pages} pages: no capacity was found up to {most} pages\n"));
        }
    }
    notes.push_str(&scattered(result));
    for refused in &result.pages_refused {
        notes.push_str(&format!(
            "  {} pages: {}; would help: {}\n",
            refused.pages, refused.why, refused.would_help
        ));
    }
    if rows.len() > 1 {
        text.push_str(&table::draw(&rows, width));
    }
    text.push_str(&notes);
    Some(text)
}

/// What small pages lose that lie all over the memory, as they usually do, against such as lie
/// together.
fn scattered(tlb: &Tlb) -> String {
    let of = |asked: &str| tlb.kinds.iter().find(|k| k.pages.asked == asked);
    let (Some(cut), Some(small)) = (of("4K-cut"), of("4K")) else { return String::new() };
    let mut text = String::from(
        "  4K-cut: small pages that lie together in memory, cut from huge ones; 4K: as the kernel gives them\n",
    );
    for (together, apart) in cut.levels.iter().zip(&small.levels) {
        if let (Some(t), Some(a)) = (together.entries.estimate(), apart.entries.estimate()) {
            if a.hi < t.lo * 0.95 {
                text.push_str(&format!(
                    "  L{} dTLB: pages that lie scattered get {:.0} of the {:.0} entries: walks to them seem to take the others\n",
                    together.level, a.value, t.value
                ));
            }
        }
    }
    text
}

/// Pairs of chains, spread over pages and packed, of every pass.
fn csv(machine: &Machine) -> Option<String> {
    let result = machine.experiments.tlb.as_ref()?.result.as_ref()?;
    let mut text = String::from(
        "pages,pass,count,spread_cycles,spread_cycles_lo,spread_cycles_hi,packed_cycles,packed_cycles_lo,packed_cycles_hi\n",
    );
    for kind in &result.kinds {
        for p in &kind.points {
            let (spread, packed) = (cells(&p.spread), cells(&p.packed));
            let _ = writeln!(text, "{},{},{},{spread},{packed}", kind.pages.asked, p.pass, p.pages);
        }
    }
    Some(text)
}
