//! Translation buffers: where a step over pages begins to cost more than the same step over lines.

use super::{median, plot, refused_pages};
use crate::figure::axis::{Numbers, Scale};
use crate::figure::plot::{Mark, Plot, Series};
use crate::parts::{Cell, Out, Table};
use records::machine::{AfterMiss, Tlb, TlbOfPages};
use std::collections::BTreeMap;
use units::Estimate;

pub(super) fn figures(tlb: &Tlb, out: &mut Out) {
    let mut table =
        Table::with_head("TLB levels", &["pages", "level", "entries", "claimed", "cost of a miss", "then"]);
    for kind in &tlb.kinds {
        for level in &kind.levels {
            let then = match level.then {
                AfterMiss::NextLevel => "the next level",
                AfterMiss::Walk => "a page walk",
                AfterMiss::Unknown => "not seen as far as was measured",
            };
            table.row(vec![
                Cell::text(&kind.pages.asked),
                Cell::count(u64::from(level.level)),
                Cell::quantity(&level.entries),
                Cell::quantity(&level.claimed),
                Cell::quantity(&level.miss.cycles),
                Cell::text(then),
            ]);
        }
    }
    out.table(&table);
    let series = |kind: &TlbOfPages| {
        let mut by_pages: BTreeMap<u64, Vec<Estimate>> = BTreeMap::new();
        for point in &kind.points {
            if let (Some(spread), Some(packed)) = (point.spread.estimate(), point.packed.estimate()) {
                by_pages.entry(point.pages).or_default().push(spread.minus(packed));
            }
        }
        let points = by_pages.into_iter().filter_map(|(pages, all)| Some((pages as f64, median(all)?)));
        Series { name: format!("{} pages", kind.pages.asked), points: points.collect() }
    };
    let marks = tlb.kinds.iter().flat_map(|kind| {
        kind.levels.iter().filter_map(|level| {
            let entries = level.entries.value()?;
            Some(Mark::at(entries, format!("level {} ({})", level.level, kind.pages.asked)))
        })
    });
    let figure = Plot {
        title: "Each cliff is the end of a TLB level: what a load pays for lying on a page of its own"
            .to_owned(),
        x: ("pages, one line on each".to_owned(), Scale::Log, Numbers::Whole),
        y: ("additional cycles of a load".to_owned(), Scale::Linear),
        series: tlb.kinds.iter().map(series).collect(),
        marks: marks.collect(),
    };
    let differs = "in a guest a miss walks two page tables, and the host may back small pages by small ones of its \
                   own; some cores join neighbouring pages in one entry. The line is the median of all passes, the \
                   band spans them.";
    plot(out, "tlb", figure, differs);
    refused_pages(&tlb.pages_refused, out);
}
