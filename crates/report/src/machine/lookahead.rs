//! The re-order buffer and its like: cliffs in the time of two misses, by what stands between.

use super::plot;
use crate::figure::axis::{Numbers, Scale};
use crate::figure::bars::{Bar, bars};
use crate::figure::plot::{Mark, Plot, Series};
use crate::parts::{Cell, Figure, Out, Table};
use crate::text::{escape, figures as in_figures, quantity};
use records::machine::{Cliff, Rob};

/// Fillers that are drawn, those that say most; all are in the table.
const DRAWN: [&str; 6] = ["mixed", "nop1", "int_add", "vector_add", "load", "store"];

pub(super) fn figures(rob: &Rob, out: &mut Out) {
    out.say(&format!(
        "The re-order buffer has {} entries for a mix of instructions; {} no-operations share an entry.",
        quantity(&rob.entries),
        quantity(&rob.nops_per_entry)
    ));
    let drawn = |cliff: &&Cliff| DRAWN.contains(&cliff.filler.as_str());
    let series = rob.cliffs.iter().filter(drawn).map(|cliff| {
        let points = cliff.points.iter().filter_map(|p| Some((f64::from(p.gap), p.cycles.estimate()?)));
        Series { name: cliff.filler.clone(), points: points.collect() }
    });
    let marks = rob
        .cliffs
        .iter()
        .filter(drawn)
        .filter_map(|cliff| Some(Mark::at(cliff.gap.value()?, cliff.filler.as_str())));
    let figure = Plot {
        title: "Two misses overlap until what lies between them fills a resource of the core".to_owned(),
        x: ("instructions between two misses".to_owned(), Scale::Log, Numbers::Whole),
        y: ("cycles of the pair".to_owned(), Scale::Linear),
        series: series.collect(),
        marks: marks.collect(),
    };
    let differs =
        "each microarchitecture has other queues; a neighbour on the same core may own half of each.";
    plot(out, "rob", figure, differs);

    let mut table =
        Table::with_head("What runs out, by filler", &["filler", "gap", "capacity", "what it means"]);
    let mut all = Vec::new();
    for cliff in &rob.cliffs {
        table.row(vec![
            Cell::text(&cliff.filler),
            Cell::quantity(&cliff.gap),
            Cell::quantity(&cliff.capacity),
            Cell::html(escape(&cliff.meaning)),
        ]);
        if let Some(value) = cliff.gap.estimate() {
            all.push(Bar { name: cliff.filler.clone(), value, shown: in_figures(value), class: 0 });
        }
    }
    if all.is_empty() {
        out.table(&table);
        return;
    }
    let title = "How many of each instruction fit between two misses that overlap".to_owned();
    let svg = bars(&title, "instructions", &all);
    out.figure(Figure { id: "rob-capacity", title, svg, table, differs });
}
