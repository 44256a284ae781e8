//! Several records of one kind beside each other: their main figures in one table.
//!
//! No judgement: whether two figures differ is for a comparison of interleaved runs to say.

use crate::Named;
use crate::parts::{Cell, Out, Table};
use crate::profile::change;
use crate::run::throughput;
use crate::text::base;
use records::AnyRecord;
use records::machine::Machine;
use records::profile::Profile;
use records::run::Run;
use std::collections::BTreeMap;

/// What is set beside: its name, and its cell in each record that has it.
type Rows = Vec<(String, BTreeMap<usize, Cell>)>;

/// Names the main figures of a record of one kind.
type Figures = fn(&AnyRecord) -> Vec<(String, Cell)>;

/// A section for each kind of which there are several records; `None` where there is none.
pub(crate) fn part(records: &[Named]) -> Option<Out> {
    let kinds: [(&str, &str, Figures); 3] = [
        ("machine", "Machines side by side", machine),
        ("profile", "Profiles side by side", profile),
        ("run", "Harvests side by side", run),
    ];
    let mut out = Out::new("beside".to_owned());
    for (kind, title, figures) in kinds {
        let of_kind: Vec<(usize, &Named)> =
            records.iter().enumerate().filter(|(_, named)| named.record.header.kind == kind).collect();
        if of_kind.len() < 2 {
            continue;
        }
        out.section(kind, title);
        out.table(&table(&of_kind, title, figures));
        if kind == "run" {
            harvests(&of_kind, &mut out);
        }
        if kind == "profile" {
            changes(&of_kind, &mut out);
        }
    }
    out.end_section();
    (!out.contents.is_empty()).then_some(out)
}

/// In which calls the last one differs from the first one, if both are of time.
fn changes(of_kind: &[(usize, &Named)], out: &mut Out) {
    let typed = |(_, named): &(usize, &Named)| {
        Some((base(&named.name).to_owned(), named.record.body_as::<Profile>()?))
    };
    let ends = of_kind.first().and_then(typed).zip(of_kind.last().and_then(typed));
    let Some(((first_name, first), (last_name, last))) = ends else { return };
    if [&first, &last].iter().any(|profile| profile.sampling.backend.samples_accesses()) {
        return;
    }
    change::graphs((&first_name, &first), (&last_name, &last), out);
}

/// Their throughput against latency in one figure.
fn harvests(of_kind: &[(usize, &Named)], out: &mut Out) {
    let typed = |(n, named): &(usize, &Named)| {
        let run: Run = named.record.body_as()?;
        Some((format!("{}: {}", n + 1, base(&named.name)), run))
    };
    let (figure, without) = throughput::figure(&of_kind.iter().filter_map(typed).collect::<Vec<_>>());
    if let Some(figure) = figure {
        out.figure(figure);
    }
    for why in without {
        out.missing(&format!("{why}."));
    }
}

fn table(of_kind: &[(usize, &Named)], title: &str, figures: Figures) -> Table {
    let mut table = Table::with_head(title, &["figure"]);
    let mut rows = Rows::new();
    for (column, (n, named)) in of_kind.iter().enumerate() {
        table.head.push(format!("{}: {}", n + 1, base(&named.name)));
        for (what, cell) in figures(&named.record) {
            let known = rows.iter().position(|(other, _)| *other == what);
            let row = known.unwrap_or_else(|| {
                rows.push((what, BTreeMap::new()));
                rows.len() - 1
            });
            rows[row].1.insert(column, cell);
        }
    }
    for (what, mut cells) in rows {
        let mut row = vec![Cell::text(&what)];
        row.extend(
            (0..of_kind.len()).map(|n| cells.remove(&n).unwrap_or_else(|| Cell::text("not measured"))),
        );
        table.row(row);
    }
    table.note.push_str("Whether two figures differ is not judged here.");
    table
}

fn machine(record: &AnyRecord) -> Vec<(String, Cell)> {
    let Some(machine) = record.body_as::<Machine>() else { return Vec::new() };
    let mut all = Vec::new();
    for level in &machine.levels {
        all.push((format!("{}: time of a load", level.name), Cell::quantity(&level.latency.ns)));
        all.push((format!("{}: size", level.name), Cell::quantity(&level.size)));
    }
    let experiments = &machine.experiments;
    for kind in experiments.mlp.iter().filter_map(|o| o.result.as_ref()).flat_map(|m| &m.kinds) {
        all.push((format!("misses under way, {} pages", kind.pages.asked), Cell::quantity(&kind.sustained)));
    }
    if let Some(rob) = experiments.rob.as_ref().and_then(|o| o.result.as_ref()) {
        all.push(("entries of the re-order buffer".to_owned(), Cell::quantity(&rob.entries)));
    }
    if let Some(bandwidth) = experiments.bandwidth.as_ref().and_then(|o| o.result.as_ref()) {
        all.push(("bandwidth of memory, all CPUs".to_owned(), Cell::quantity(&bandwidth.platform_maximum)));
        all.push(("bandwidth of memory, one CPU".to_owned(), Cell::quantity(&bandwidth.single_maximum)));
    }
    all
}

fn profile(record: &AnyRecord) -> Vec<(String, Cell)> {
    let Some(profile) = record.body_as::<Profile>() else { return Vec::new() };
    let s = &profile.summary;
    let told = |what: &str, cell| (what.to_owned(), cell);
    vec![
        told("wall-clock time", Cell::quantity(&s.elapsed)),
        told("CPU time", Cell::quantity(&s.cpu_time)),
        told("waiting for loads", Cell::share(&s.memory_bound)),
        told("… beyond L2", Cell::share(&s.by_level.beyond_l2)),
        told("waiting for stores", Cell::share(&s.stores)),
        told("in the kernel", Cell::share(&s.in_kernel)),
        told("computing", Cell::share(&s.computing)),
    ]
}

fn run(record: &AnyRecord) -> Vec<(String, Cell)> {
    let Some(run) = record.body_as::<Run>() else { return Vec::new() };
    let told = |what: &str, cell| (what.to_owned(), cell);
    vec![
        told("wall-clock time", Cell::quantity(&run.wall)),
        told("slowdown of the primary", Cell::share(&run.slowdown.share)),
        told("absences: 99% are shorter than", Cell::quantity(&run.absences.p99)),
        told("the longest absence", Cell::quantity(&run.absences.max)),
        told("work of all", Cell::quantity(&run.work)),
    ]
}
