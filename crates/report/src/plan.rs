//! The plan record on the page: which loads give way, by what arithmetic, and which do not.

use crate::parts::{Cell, Out, Table};
use crate::text::{base, escape, name, quantity, share};
use records::plan::{Place, Plan, PlannedModule, Source};

pub(crate) fn sections(plan: &Plan, out: &mut Out) {
    prices(plan, out);
    for module in &plan.modules {
        sites(module, out);
    }
}

fn prices(plan: &Plan, out: &mut Out) {
    out.section("prices", "Prices and bounds");
    match &plan.prices.source {
        Source::Machine { path, created } => {
            out.say(&format!(
                "Prices are those of the machine record {}, written at {}.",
                name(path),
                escape(created)
            ));
        }
        Source::Defaults { why } => {
            out.missing(&format!("Prices are those of a common machine: {}.", escape(why)));
        }
    }
    out.list(&plan.prices.assumed.iter().map(|a| format!("Assumed: {}", escape(a))).collect::<Vec<_>>());
    let mut table = Table::with_head("Prices", &["what", "figure"]);
    for level in &plan.prices.levels {
        table.row(vec![
            Cell::text(&format!("a load that {} serves", level.name)),
            Cell::quantity(&level.cycles),
        ]);
    }
    let rows = [
        ("misses served at once", &plan.prices.overlap),
        ("core clock", &plan.prices.clock),
        ("what a guest displaces", &plan.prices.pollution),
        ("longest absence allowed", &plan.bounds.max_absence),
    ];
    for (what, q) in rows {
        table.row(vec![Cell::text(what), Cell::quantity(q)]);
    }
    table.row(vec![Cell::text("slowdown allowed"), Cell::share(&plan.bounds.max_slowdown)]);
    out.table(&table);
    out.say(&escape(&plan.bounds.arithmetic));
    let mut table =
        Table::with_head("Alternatives", &["plan", "what", "sites", "gain", "cost if all hit", "chosen"]);
    for other in &plan.alternatives {
        table.row(vec![
            Cell::text(&other.name),
            Cell::text(&other.what),
            Cell::count(other.sites as u64),
            Cell::quantity(&other.gain),
            Cell::quantity(&other.cost_if_all_hit),
            Cell::text(if other.chosen { "yes" } else { "" }),
        ]);
    }
    out.table(&table);
}

fn place(place: &Place) -> [Cell; 3] {
    let source = place.source.as_ref();
    let source =
        source.map_or_else(|| format!("{:#x}", place.address), |s| format!("{}:{}", base(&s.file), s.line));
    [
        Cell::html(name(place.function.as_deref().unwrap_or("?"))),
        Cell::html(name(&source)),
        Cell::html(format!("<code>{}</code>", escape(&place.instruction))),
    ]
}

fn sites(module: &PlannedModule, out: &mut Out) {
    let id = format!(
        "{}-{}",
        module.role.word(),
        &module.content.chars().filter(char::is_ascii_alphanumeric).take(12).collect::<String>()
    );
    out.section(&id, &format!("{} ({})", base(&module.path), module.role.word()));
    let counts = &module.counts;
    out.say(&format!(
        "{} functions, {} accesses, {} candidates: {} loads give way.",
        counts.functions, counts.accesses, counts.candidates, counts.sites
    ));
    let head = [
        "function",
        "source",
        "instruction",
        "class",
        "misses",
        "a miss costs",
        "the yield costs",
        "net gain",
    ];
    let mut table = Table::with_head("Sites", &head);
    for site in &module.sites {
        let mut row = Vec::from(place(&site.place));
        row.extend([
            Cell::text(site.class.word()),
            Cell::html(share(&site.gain.p_miss)),
            Cell::html(quantity(&site.gain.miss)),
            Cell::quantity(&site.gain.yield_cost),
            Cell::quantity(&site.gain.net),
        ]);
        table.row(row);
    }
    if table.rows.is_empty() {
        out.missing("No load of it gives way.");
    }
    out.table(&table);
    let mut table =
        Table::with_head("Loads left alone", &["function", "source", "instruction", "class", "why"]);
    for rejected in &module.rejected {
        let mut row = Vec::from(place(&rejected.place));
        row.extend([Cell::text(rejected.class.word()), Cell::text(&rejected.why)]);
        table.row(row);
    }
    if !table.rows.is_empty() {
        out.details("Loads left alone, and why", &table.html(false));
    }
}
