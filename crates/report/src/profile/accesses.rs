//! Profiles of loads and stores that the hardware sampled: by latency, since such samples tell no
//! time.

use crate::figure::bars::{Bar, bars};
use crate::figure::stack::{Part, stack};
use crate::parts::{Cell, Figure, Out, Table};
use crate::text::{base, escape, name, percent, quantity};
use records::profile::{Backend, Profile, StallingLoad};
use units::Quantity;

/// Smaller parts cannot be seen; the table has all.
const LEAST: f64 = 0.0005;
const DRAWN: usize = 14;

/// What the hardware sampled, in words.
pub(super) fn what(profile: &Profile) -> String {
    let sampling = &profile.sampling;
    let by = match sampling.backend {
        Backend::Clock | Backend::Signal => "a clock",
        Backend::Pebs => "Intel PEBS",
        Backend::Ibs => "AMD IBS",
        Backend::Spe => "Arm SPE",
    };
    let least = sampling.least_latency.value();
    let least = least.map_or_else(String::new, |cycles| {
        format!(" Loads quicker than {cycles:.0} cycles were not sampled.")
    });
    let kind = sampling.latency.map_or_else(String::new, |kind| format!(": {}", escape(kind.says())));
    format!(
        "{} loads and stores were sampled by {by}.{least} A load took {} on average{kind}.",
        sampling.samples,
        quantity(&profile.summary.average_latency)
    )
}

/// What served the loads.
pub(super) fn levels(profile: &Profile, out: &mut Out) {
    out.section("time", "What served the loads");
    let level = &profile.summary.by_level;
    let all: [(&str, &Quantity); 8] = [
        ("L1", &level.l1),
        ("L2", &level.l2),
        ("L3", &level.l3),
        ("DRAM", &level.dram),
        ("another node or group of cores", &level.remote),
        ("another core's cache, modified", &level.dirty),
        ("a miss under way already", &level.in_flight),
        ("not told", &level.unresolved),
    ];
    let by = if profile.summary.average_latency.value().is_some() { "latency" } else { "number" };
    let mut table = Table::with_head("What served the loads", &["level", &format!("share, by {by}")]);
    let mut parts = Vec::new();
    for (what, share) in all {
        table.row(vec![Cell::text(what), Cell::share(share)]);
        if let Some(value) = share.estimate().filter(|value| value.value > LEAST) {
            parts.push(Part { name: what.to_owned(), share: value.value, shown: percent(value) });
        }
    }
    if parts.is_empty() {
        out.missing("The samples do not tell what served the loads.");
        out.table(&table);
        return;
    }
    let title = format!("What served the loads, by {by}");
    let svg = stack(&title, &parts);
    let differs =
        "the hardware chooses what it samples, and each kind of processor means something else by latency.";
    out.figure(Figure { id: "time", title, svg, table, differs });
}

pub(super) fn loads(profile: &Profile, out: &mut Out) {
    out.section("loads", "The loads that take longest");
    let head = [
        "share of latency",
        "cycles each",
        "levels",
        "page walks",
        "locked",
        "source",
        "function",
        "instruction",
        "data",
        "threads",
        "samples",
    ];
    let mut table = Table::with_head("Loads, by their share of all latency", &head);
    let mut drawn = Vec::new();
    for load in &profile.loads {
        let source = match (&load.file, load.line) {
            (Some(file), Some(line)) => format!("{}:{line}", base(file)),
            _ => format!("{}+{:#x}", base(&load.module), load.address),
        };
        table.row(vec![
            Cell::share(&load.latency_share),
            Cell::quantity(&load.latency),
            Cell::html(levels_of(load)),
            Cell::share(&load.translation),
            Cell::share(&load.locked),
            Cell::html(name(&source)),
            Cell::html(name(load.function.as_deref().unwrap_or("?"))),
            Cell::html(format!("<code>{}</code>", escape(&load.instruction))),
            Cell::html(load.object.as_deref().map_or_else(String::new, name)),
            Cell::count(load.threads as u64),
            Cell::count(load.samples),
        ]);
        if let Some(value) = load.latency_share.estimate().filter(|_| drawn.len() < DRAWN) {
            let named = format!("{source} {}", load.function.as_deref().unwrap_or_default());
            drawn.push(Bar { name: named, value: value.scaled(100.0), shown: percent(value), class: 0 });
        }
    }
    shown("loads", "The loads that take most of all latency", &drawn, table, out);
}

/// Levels of a load, most first.
fn levels_of(load: &StallingLoad) -> String {
    let levels = load.by_level.iter().filter_map(|part| {
        let share = part.share.value()?;
        Some(format!("{} {:.0}%", escape(part.level.word()), 100.0 * share))
    });
    levels.collect::<Vec<_>>().join(", ")
}

pub(super) fn functions(profile: &Profile, out: &mut Out) {
    out.section("functions", "Functions");
    let head = ["function", "module", "share of latency", "samples"];
    let mut table = Table::with_head("Functions, by their share of all latency", &head);
    for function in &profile.functions {
        let shown = function.function.clone().unwrap_or_else(|| format!("{:#x}", function.address));
        table.row(vec![
            Cell::html(name(&shown)),
            Cell::html(name(base(&function.module))),
            Cell::share(&function.latency_share),
            Cell::count(function.samples),
        ]);
    }
    if table.rows.is_empty() {
        out.missing("No function was sampled.");
    }
    out.table(&table);
}

pub(super) fn objects(profile: &Profile, out: &mut Out) {
    out.section("objects", "The data that is waited for");
    let head = ["data", "share of latency", "bytes", "threads"];
    let mut table = Table::with_head("Data, by its share of all latency", &head);
    let mut drawn = Vec::new();
    for object in &profile.objects {
        table.row(vec![
            Cell::html(name(&object.name)),
            Cell::share(&object.latency_share),
            Cell::quantity(&object.bytes),
            Cell::count(object.threads as u64),
        ]);
        if let Some(value) = object.latency_share.estimate().filter(|_| drawn.len() < DRAWN) {
            let (named, shown) = (object.name.clone(), percent(value));
            drawn.push(Bar { name: named, value: value.scaled(100.0), shown, class: 2 });
        }
    }
    shown("objects", "The data that takes most of all latency", &drawn, table, out);
}

fn shown(id: &'static str, title: &str, drawn: &[Bar], table: Table, out: &mut Out) {
    if drawn.is_empty() {
        out.missing("The samples tell no latency here.");
        out.table(&table);
        return;
    }
    let svg = bars(title, "% of the latency of all sampled loads", drawn);
    let differs = "which data is in which cache depends on input, neighbours and machine.";
    out.figure(Figure { id, title: title.to_owned(), svg, table, differs });
}
