//! The run record on the page: what a harvest gave, and what the primary paid for it.

use crate::figure::axis::{Numbers, Scale};
use crate::figure::bars::{Bar, bars};
use crate::figure::plot::{Mark, Plot, Series};
use crate::parts::{Cell, Figure, Out, Table};
use crate::text::{base, cut, escape, figures, name, quantity, share};
use records::run::{Ended, Process, Run};
use units::{Estimate, Quantity};

pub(crate) fn sections(run: &Run, out: &mut Out) {
    gave(run, out);
    ran(run, out);
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
            ("fair", "The slowdown is not told apart from what is allowed: its interval holds that")
        }
        _ => ("fair", "How much the primary was slowed down is not resolved"),
    };
    out.html.push_str(&format!(
        "<div class=\"verdict {}\"><p><strong>{}.</strong></p><ul><li>Slowdown: {}; allowed: {}</li>\
         <li>Cycles in which the primary waited for memory: {}</li><li>Of those, other work ran in: {}</li>\
         <li>It ran for {}</li></ul></div>\n",
        within.0,
        within.1,
        share(&run.slowdown.share),
        share(&run.bounds.max_slowdown),
        quantity(&run.cycles.stalled),
        quantity(&run.cycles.harvested),
        quantity(&run.wall)
    ));
    if !run.without.is_empty() {
        out.missing(&format!("Left out: {}.", escape(&records::plan::told(&run.without))));
    }
    let mut table = Table::with_head("The run in figures", &["", "figure"]);
    let rows: [(&str, &Quantity); 7] = [
        ("yields of the primary", &run.yields.primary),
        ("yields of guests", &run.yields.guests),
        ("cost of a yield", &run.yields.cost),
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

fn ended(process: &Process) -> String {
    match &process.ended {
        Ended::Exited { code } => format!("exited with {code}"),
        Ended::Killed { signal, .. } => format!("killed by signal {signal}"),
        Ended::WithThePrimary => "ended with the primary".to_owned(),
        Ended::NotStarted { why } => format!("not started: {}", escape(why)),
        Ended::Unknown { why } => format!("not known: {}", escape(why)),
    }
}

fn ran(run: &Run, out: &mut Out) {
    out.section("ran", "Who ran, and where");
    let command = |process: &Process| name(&cut(&process.command.join(" "), 200));
    let head =
        ["program", "role", "ended", "aboard", "at home", "running", "waiting", "progress", "trips home"];
    let mut table = Table::with_head("Programs", &head);
    let none = || Cell::text("");
    let mut first =
        vec![Cell::html(command(&run.primary)), Cell::text("primary"), Cell::html(ended(&run.primary))];
    first.resize_with(head.len(), none);
    table.row(first);
    let mut drawn = Vec::new();
    for scavenger in &run.scavengers {
        let trips = scavenger.trips_home.iter().map(|t| format!("{} × {}", t.count, escape(&t.because)));
        let times = &scavenger.times;
        table.row(vec![
            Cell::html(command(&scavenger.process)),
            Cell::text(&format!("scavenger {}", scavenger.copy)),
            Cell::html(ended(&scavenger.process)),
            Cell::quantity(&times.aboard),
            Cell::quantity(&times.at_home),
            Cell::quantity(&times.running),
            Cell::quantity(&times.waiting),
            Cell::quantity(&scavenger.progress),
            Cell::html(trips.collect::<Vec<_>>().join("; ")),
        ]);
        let program = scavenger.process.command.first().map_or("?", |c| base(c));
        for (what, q, class) in [("aboard", &times.aboard, 0), ("at home", &times.at_home, 1)] {
            if let Some(value) = seconds(q) {
                let named = format!("{program} {}, {what}", scavenger.copy);
                drawn.push(Bar { name: named, value, shown: figures(value), class });
            }
        }
    }
    if let Some(siblings) = &run.siblings {
        out.say(&format!(
            "{} threads were each other's guests: they went aboard {} times.",
            quantity(&siblings.threads),
            quantity(&siblings.boardings)
        ));
        let mut table = Table::with_head("Threads", &["thread", "boardings", "hosted", "aboard", "waiting"]);
        for thread in &siblings.each {
            table.row(vec![
                Cell::count(u64::from(thread.tid)),
                Cell::quantity(&thread.boardings),
                Cell::quantity(&thread.hosted),
                Cell::quantity(&thread.aboard),
                Cell::quantity(&thread.waiting),
            ]);
        }
        out.table(&table);
    }
    if drawn.is_empty() {
        out.missing("When scavengers ran is not resolved.");
        out.table(&table);
        return;
    }
    let title = "Time that scavengers spent aboard the primary, and at home".to_owned();
    let svg = bars(&title, "s", &drawn);
    let differs = "a primary that seldom waits takes few guests aboard; idle CPUs let them run at home.";
    out.figure(Figure { id: "ran", title, svg, table, differs });
}

/// A time in seconds, whatever its unit.
fn seconds(q: &Quantity) -> Option<Estimate> {
    let Quantity::Resolved { unit, .. } = q else { return None };
    let factor = match unit {
        units::Unit::Nanos => 1e-9,
        units::Unit::Micros => 1e-6,
        units::Unit::Seconds => 1.0,
        _ => return None,
    };
    q.estimate().map(|e| e.scaled(factor))
}

fn absences(run: &Run, out: &mut Out) {
    out.section("absences", "Absences of the primary");
    let all = &run.absences;
    let mut table = Table::with_head("Absences", &["", "figure"]);
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
    let points = all.histogram.iter().map(|bucket| {
        sum = bucket.count.saturating_add(sum);
        // Counts of a sample: the share's interval by Wilson's formula.
        (bucket.below_ns, wilson(sum, total))
    });
    let figure = Plot {
        title: "How long the primary was away: the share of absences that are shorter".to_owned(),
        x: ("length (ns)".to_owned(), Scale::Log, Numbers::Plain),
        y: ("shorter absences (%)".to_owned(), Scale::Linear),
        series: vec![Series { name: "absences".to_owned(), points: points.collect() }],
        marks: seconds(&run.bounds.max_absence)
            .map(|e| Mark { x: e.value * 1e9, name: "allowed".to_owned() })
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

/// A share in percent with its 95% interval.
fn wilson(count: u64, of: u64) -> Estimate {
    const Z: f64 = 1.96;
    let (n, p) = (of as f64, count as f64 / of as f64);
    let middle = (p + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    Estimate::new(p, (middle - half).max(0.0), (middle + half).min(1.0)).scaled(100.0)
}

fn sites(run: &Run, out: &mut Out) {
    out.section("sites", "Sites");
    let mut table = Table::with_head(
        "Sites",
        &["yields", "role", "function", "source", "instruction", "hit a cache", "not worth it"],
    );
    for site in &run.sites {
        let place = &site.place;
        let source = place.source.as_ref().map_or_else(
            || format!("{}+{:#x}", base(&site.file), place.address),
            |s| format!("{}:{}", base(&s.file), s.line),
        );
        table.row(vec![
            Cell::quantity(&site.yields),
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
