//! Loads, functions and data, by how long the core waited.

use crate::figure::bars::{Bar, bars};
use crate::parts::{Cell, Figure, Out, Table};
use crate::text::{base, escape, name, percent};
use records::profile::{Profile, StallingLoad};

/// Bars of one figure: what is below is small.
const DRAWN: usize = 14;

fn place(load: &StallingLoad) -> String {
    match (&load.file, load.line) {
        (Some(file), Some(line)) => format!("{}:{line}", base(file)),
        _ => format!("{}+{:#x}", base(&load.module), load.address),
    }
}

pub(super) fn loads(profile: &Profile, out: &mut Out) {
    out.section("loads", "The loads that stall");
    let head = [
        "stall",
        "each time",
        "latency",
        "level",
        "pattern",
        "source",
        "function",
        "instruction",
        "data",
        "footprint",
        "harvestable",
        "samples",
        "called from",
    ];
    let mut table = Table::with_head("Loads, most stall first", &head);
    let mut drawn = Vec::new();
    for load in &profile.loads {
        let because = if load.level_because.is_empty() {
            escape(load.level.word())
        } else {
            format!("<span title=\"{}\">{}</span>", escape(&load.level_because), escape(load.level.word()))
        };
        let function = load.function.as_deref().unwrap_or("?");
        table.row(vec![
            Cell::share(&load.stall),
            Cell::quantity(&load.stall_each),
            Cell::quantity(&load.latency),
            Cell::html(because),
            Cell::text(load.pattern.word()),
            Cell::html(name(&place(load))),
            Cell::html(name(function)),
            Cell::html(format!("<code>{}</code>", escape(&load.instruction))),
            Cell::html(load.object.as_deref().map_or_else(String::new, name)),
            Cell::quantity(&load.footprint),
            Cell::share(&load.harvestable),
            Cell::count(load.samples),
            Cell::html(load.callers.iter().map(|c| name(c)).collect::<Vec<_>>().join(" ← ")),
        ]);
        if let Some(value) = load.stall.estimate().filter(|_| drawn.len() < DRAWN) {
            let class = usize::from(!load.beyond_l2);
            let named = format!("{} {}", place(load), load.function.as_deref().unwrap_or_default());
            drawn.push(Bar { name: named, value: value.scaled(100.0), shown: percent(value), class });
        }
    }
    if drawn.is_empty() {
        out.missing("No load was seen that the core waited for.");
        out.table(&table);
        return;
    }
    let title = format!("The loads that the core waited for longest: {}", place(&profile.loads[0]));
    let svg = bars(&title, "% of the CPU time", &drawn);
    out.say("Bars of the first colour go beyond L2, as far as is known. Point at a level to see why it was chosen.");
    let differs = "which data is in which cache depends on input, neighbours and machine.";
    out.figure(Figure { id: "loads", title, svg, table, differs });
}

pub(super) fn functions(profile: &Profile, out: &mut Out) {
    out.section("functions", "Functions");
    let mut table = Table::with_head(
        "Functions, most CPU time first",
        &["function", "module", "time", "stall", "samples"],
    );
    for function in &profile.functions {
        let shown = function.function.clone().unwrap_or_else(|| format!("{:#x}", function.address));
        table.row(vec![
            Cell::html(name(&shown)),
            Cell::html(name(base(&function.module))),
            Cell::share(&function.time),
            Cell::share(&function.stall),
            Cell::count(function.samples),
        ]);
    }
    if table.rows.is_empty() {
        out.missing("No function was sampled.");
    }
    out.table(&table);
}

pub(super) fn objects(profile: &Profile, out: &mut Out) {
    out.section("objects", "The data that was waited for");
    let head = ["data", "stall", "bytes", "count", "allocations", "threads", "allocated at"];
    let mut table = Table::with_head("Data, most stall first", &head);
    let mut drawn = Vec::new();
    for object in &profile.objects {
        let site = object.site.as_ref().map_or_else(String::new, |site| {
            let line = match (&site.file, site.line) {
                (Some(file), Some(line)) => format!("{}:{line}", base(file)),
                _ => String::new(),
            };
            let stack = site.stack.iter().map(|s| name(s)).collect::<Vec<_>>().join(" ← ");
            format!("{} {stack}", escape(&line))
        });
        table.row(vec![
            Cell::html(name(&object.name)),
            Cell::share(&object.stall),
            Cell::quantity(&object.bytes),
            Cell::count(object.count),
            Cell::quantity(&object.allocations),
            Cell::count(object.threads as u64),
            Cell::html(site),
        ]);
        if let Some(value) = object.stall.estimate().filter(|_| drawn.len() < DRAWN) {
            drawn.push(Bar {
                name: object.name.clone(),
                value: value.scaled(100.0),
                shown: percent(value),
                class: 2,
            });
        }
    }
    if drawn.is_empty() {
        out.missing("No data is known that the core waited for.");
        return;
    }
    let title = "The data that the core waited for longest".to_owned();
    let svg = bars(&title, "% of the CPU time", &drawn);
    let differs = "loads whose address was not seen count nowhere here.";
    out.figure(Figure { id: "objects", title, svg, table, differs });
}
