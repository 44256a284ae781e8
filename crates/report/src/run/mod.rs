//! The run record on the page: what a harvest gave, and what the primary paid for it.

mod programs;
pub(crate) mod throughput;

use crate::figure::axis::{Numbers, Scale};
use crate::figure::plot::{Mark, Plot, Series};
use crate::parts::{Cell, Figure, Out, Table};
use crate::text::{base, escape, name, quantity, share};
use programs::seconds;
use records::run::Run;
use units::Quantity;

/// `record` is the name of its file.
pub(crate) fn sections(record: &str, run: &Run, out: &mut Out) {
    gave(run, out);
    out.section("throughput", "Throughput against latency");
    let (figure, without) = throughput::figure(&[(record.to_owned(), run.clone())]);
    if let Some(figure) = figure {
        out.figure(figure);
    }
    for why in without {
        out.missing(&format!("{why}."));
    }
    programs::section(run, out);
    absences(run, out);
    sites(run, out);
}

fn gave(run: &Run, out: &mut Out) {
    out.section("gave", "What the harvest gave");
    let allowed = run.bounds.max_slowdown.value();
    let within = match (run.slowdown.share.estimate(), allowed) {
        (Some(e), Some(most)) if e.lo > most => ("noisy", "The primary was slowed down more than allowed"),
        (Some(e), Some(most)) if e.hi <= most => {
            ("quiet", "The primary was slowed down no more than allowed")
        }
        (Some(_), Some(_)) => {
            ("fair", "Whether the bound was kept is not known: it lies within the interval of the slowdown")
        }
        _ => ("fair", "How much the primary was slowed down is not resolved"),
    };
    out.html.push_str(&format!(
        "<div class=\"verdict {}\"><p><strong>{}.</strong></p><ul><li>Slowdown: {}; allowed: {}</li>\
         <li>Work of all programs, where that of one alone is 1: {}</li><li>It ran for {}</li></ul></div>\n",
        within.0,
        within.1,
        share(&run.slowdown.share),
        share(&run.bounds.max_slowdown),
        quantity(&run.work),
        quantity(&run.wall)
    ));
    if !run.without.is_empty() {
        out.missing(&format!("Left out: {}.", escape(&records::plan::told(&run.without))));
    }
    let mut table = Table::with_head("The run in figures", &["what", "figure"]);
    let rows: [(&str, &Quantity); 5] = [
        ("yields of guests", &run.yields.guests),
        ("longest absence allowed", &run.bounds.max_absence),
        ("time watched", &run.slowdown.watched),
        ("of that, with guests", &run.slowdown.with_guests),
        ("wall-clock time", &run.wall),
    ];
    for (what, q) in rows {
        table.row(vec![Cell::text(what), Cell::quantity(q)]);
    }
    out.table(&table);
    crate::profile::refusals(&run.refusals, out);
}

fn absences(run: &Run, out: &mut Out) {
    out.section("absences", "Absences of the primary");
    let all = &run.absences;
    let mut table = Table::with_head("Absences", &["what", "figure"]);
    let rows = [
        ("absences that were timed", &all.count),
        ("half are shorter than", &all.p50),
        ("95%", &all.p95),
        ("99%", &all.p99),
        ("99.9%", &all.p999),
        ("the longest", &all.max),
        ("allowed", &run.bounds.max_absence),
    ];
    for (what, q) in rows {
        table.row(vec![Cell::text(what), Cell::quantity(q)]);
    }
    out.table(&table);
    let total = all.histogram.iter().fold(0, |sum: u64, bucket| sum.saturating_add(bucket.count));
    if total == 0 {
        out.missing("Their distribution: none was timed.");
        return;
    }
    let mut sum: u64 = 0;
    let points = all.histogram.iter().filter_map(|bucket| {
        sum = bucket.count.saturating_add(sum);
        Some((bucket.below_ns, units::share(sum, total)?.scaled(100.0)))
    });
    let figure = Plot {
        title: "How long the primary was away: the share of absences that are shorter".to_owned(),
        x: ("length (ns)".to_owned(), Scale::Log, Numbers::Plain),
        y: ("shorter absences (%)".to_owned(), Scale::Linear),
        series: vec![Series { name: "absences".to_owned(), points: points.collect() }],
        marks: seconds(&run.bounds.max_absence)
            .map(|e| Mark::at(e.value * 1e9, "allowed"))
            .into_iter()
            .collect(),
    };
    let figure = figure.prepared();
    if figure.is_empty() {
        return;
    }
    let differs = "guests that yield seldom stay longer; the kernel may interrupt them, too.";
    out.figure(Figure {
        id: "absences",
        title: figure.title.clone(),
        svg: figure.svg(),
        table: figure.table(),
        differs,
    });
}

fn sites(run: &Run, out: &mut Out) {
    out.section("sites", "Sites");
    let mut table = Table::with_head(
        "Sites",
        &["yields timed", "role", "function", "source", "instruction", "hit a cache", "not worth it"],
    );
    for site in &run.sites {
        let place = &site.place;
        let source = place.source.as_ref().map_or_else(
            || format!("{}+{:#x}", base(&site.file), place.address),
            |s| format!("{}:{}", base(&s.file), s.line),
        );
        table.row(vec![
            Cell::count(site.watched),
            Cell::text(site.role.word()),
            Cell::html(name(place.function.as_deref().unwrap_or("?"))),
            Cell::html(name(&source)),
            Cell::html(format!("<code>{}</code>", escape(&place.instruction))),
            Cell::share(&site.hits),
            Cell::text(site.why_not.as_deref().unwrap_or_default()),
        ]);
    }
    if table.rows.is_empty() {
        out.missing("The record lists no sites.");
    }
    out.table(&table);
    let off = run.switched_off.iter().map(|site| {
        format!(
            "Switched off: {} at {} in {}: {}",
            escape(site.role.word()),
            format_args!("{:#x}", site.place.address),
            name(site.place.function.as_deref().unwrap_or("?")),
            escape(&site.why)
        )
    });
    out.list(&off.collect::<Vec<_>>());
}
