//! The reproduction record on the page: a document's claims beside this machine.

use crate::figure::axis::{Numbers, Scale};
use crate::figure::plot::{Plot, Series};
use crate::figure::ratios::{PAPER, Ratio, ratios};
use crate::parts::{Cell, Figure, Out, Table};
use crate::text::{escape, label_figures};
use records::reproduction::{ClaimCurve, ClaimCurves, ClaimOutcome, ClaimTable, ClaimVerdict, Reproduction};
use units::{Quantity, Unit};

/// Ids of figures on the page: those of the record are free text. No document has more of them.
const DRAWN: [&str; 4] = ["curves-1", "curves-2", "curves-3", "curves-4"];

pub(crate) fn sections(found: &Reproduction, out: &mut Out) {
    out.section("claims", "Claims");
    let of = |verdict| found.claims.iter().filter(|claim| claim.verdict == verdict).count();
    let counts: Vec<String> = ClaimVerdict::ALL
        .into_iter()
        .filter(|&verdict| of(verdict) > 0)
        .map(|verdict| format!("{} {}", of(verdict), verdict.words()))
        .collect();
    out.say(&format!("{}. Here: {}.", escape(&found.title), escape(&found.processor)));
    out.say(&format!("Of {} claims: {}.", found.claims.len(), counts.join(", ")));
    over_the_document(&found.claims, out);
    out.table(&claims(&found.claims));
    let why = |claim: &ClaimOutcome| {
        claim.why.as_ref().map(|why| format!("{}: {}", escape(&claim.id), escape(why)))
    };
    out.list(&found.claims.iter().filter_map(why).collect::<Vec<_>>());
    let reading = |claim: &ClaimOutcome| {
        let reading = claim.reading.as_ref()?;
        Some(format!("{}, read differently: {}", escape(&claim.id), escape(reading)))
    };
    out.list(&found.claims.iter().filter_map(reading).collect::<Vec<_>>());
    if !found.tables.is_empty() {
        out.section("tables", "Tables of the document, and the same here");
        for table in &found.tables {
            out.say(&format!("Of the document: {}.", escape(&table.place)));
            out.table(&rows_of(table));
        }
    }
    if !found.curves.is_empty() {
        out.section("curves", "Figures of the document, and the same here");
        out.say(
            "The document's lines join the points that its text states; its own pictures are not at hand.",
        );
        for (id, curves) in DRAWN.into_iter().zip(&found.curves) {
            beside(id, curves, out);
        }
    }
}

fn claims(all: &[ClaimOutcome]) -> Table {
    let head = ["claim", "verdict", "compared", "paper", "here", "here over paper", "holds if", "place"];
    let mut table = Table::with_head("Claims", &head);
    for claim in all {
        table.row(vec![
            Cell::text(&claim.id),
            Cell::text(claim.verdict.words()),
            Cell::html(format!("<div class=\"prose\">{}</div>", escape(&claim.statistic))),
            short(&claim.paper),
            short(&claim.here),
            short(&claim.ratio),
            Cell::text(&claim.shape),
            Cell::text(&claim.place),
        ]);
    }
    table
}

fn rows_of(printed: &ClaimTable) -> Table {
    let mut head = vec!["case", "of"];
    head.extend(printed.columns.iter().map(String::as_str));
    let mut table = Table::with_head(&printed.title, &head);
    for row in &printed.rows {
        let of = if row.here { "here" } else { "the document" };
        let cells = [Cell::text(&row.name), Cell::text(of)].into_iter().chain(row.cells.iter().map(short));
        table.row(cells.collect());
    }
    if let Some(note) = &printed.note {
        table.note.clone_from(note);
    }
    table
}

/// Figures only: why there is none stands below the table, and the document's are claims anyway.
fn short(q: &Quantity) -> Cell {
    q.value().map_or_else(|| Cell::text(""), |value| Cell::sorted(escape(&q.brief()), value))
}

/// Ratios of the claims that have one, in a figure.
fn over_the_document(all: &[ClaimOutcome], out: &mut Out) {
    let drawn: Vec<(&ClaimOutcome, Ratio)> =
        all.iter().filter_map(|claim| Some((claim, drawn(claim)?))).collect();
    if drawn.is_empty() {
        out.missing("No claim has a figure both in the document and here: no ratios are drawn.");
        return;
    }
    let mut table =
        Table::with_head("Here over the document", &["claim", "paper", "here", "ratio", "verdict"]);
    for (claim, _) in &drawn {
        table.row(vec![
            Cell::text(&claim.id),
            short(&claim.paper),
            short(&claim.here),
            short(&claim.ratio),
            Cell::text(claim.verdict.words()),
        ]);
    }
    let verdicts =
        ClaimVerdict::ALL.into_iter().filter(|v| drawn.iter().any(|(claim, _)| claim.verdict == *v));
    let mut legend: Vec<(usize, &str)> = verdicts.map(|verdict| (class(verdict), verdict.words())).collect();
    legend.push((PAPER, "the document's value or range"));
    let all: Vec<Ratio> = drawn.into_iter().map(|(_, ratio)| ratio).collect();
    let title = "Figures here, over those of the document".to_owned();
    let svg = ratios(&title, "here over the document", &all, &legend);
    let differs = "processors differ in sizes and counts: a claim holds by its shape, which may allow a ratio far \
                   from 1; neighbours on the host widen intervals.";
    out.figure(Figure { id: "ratios", title, svg, table, differs });
}

/// A ratio of nothing or less has no place on a logarithmic axis.
fn drawn(claim: &ClaimOutcome) -> Option<Ratio> {
    let value = claim.ratio.estimate().filter(|e| e.value.is_finite() && e.value > 0.0)?;
    let paper = claim.paper.estimate().filter(|e| e.value > 0.0)?;
    Some(Ratio {
        name: claim.id.clone(),
        value,
        paper: (paper.lo / paper.value, paper.hi / paper.value),
        shown: label_figures(value),
        class: class(claim.verdict),
    })
}

/// Each verdict has its colour and its marker.
fn class(verdict: ClaimVerdict) -> usize {
    match verdict {
        ClaimVerdict::Reproduced => 0,
        ClaimVerdict::ShapeDiffers => 1,
        ClaimVerdict::NotIdentifiable => 2,
        ClaimVerdict::NeedsOtherHardware => 3,
        ClaimVerdict::NotRun => 7,
    }
}

/// A figure of the document, beside this machine's.
fn beside(id: &'static str, curves: &ClaimCurves, out: &mut Out) {
    let series = |curve: &ClaimCurve| Series {
        name: curve.name.clone(),
        points: curve.points.iter().filter_map(|point| Some((point.x, point.y.estimate()?))).collect(),
    };
    let scale = if curves.logarithmic { Scale::Log } else { Scale::Linear };
    let numbers = if curves.x_unit == Unit::Bytes { Numbers::Bytes } else { Numbers::Plain };
    let plot = Plot {
        title: curves.title.clone(),
        x: (curves.x.clone(), scale, numbers),
        y: (curves.y.clone(), scale),
        series: curves.paper.iter().chain(&curves.here).map(series).collect(),
        marks: Vec::new(),
    };
    let plot = plot.prepared();
    if plot.is_empty() {
        out.missing(&format!("{}: the record has no points of it.", escape(&curves.title)));
        return;
    }
    let claims: Vec<String> = curves.claims.iter().map(|id| escape(id)).collect();
    out.say(&format!("Of the document: {}. Claims: {}.", escape(&curves.place), claims.join(", ")));
    let differs = "another processor: compare where a line bends and by how much, not its nanoseconds.";
    let (svg, table) = (plot.svg(), plot.table());
    out.figure(Figure { id, title: plot.title, svg, table, differs });
}
