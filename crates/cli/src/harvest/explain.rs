//! A plan, explained: the costs it goes by, which loads become yield sites and why, which do not
//! and why, and what other plans would gain.

use ::harvest::decide::Against;
use ::harvest::session::LeftAlone;
use records::plan::{Live, LoadClass, Place, Plan, PlannedModule, Role, Source};
use std::collections::BTreeSet;
use std::fmt::Write;

pub(super) fn plan(plan: &Plan, left_alone: &[LeftAlone], beside: Option<&Against>) -> String {
    let mut text = String::new();
    if let Some(Against::Known(why)) = beside {
        let _ = writeln!(text, "not worth it {why}: all programs would run as they are");
    }
    let from = match &plan.prices.source {
        Source::Machine { path, created } => format!("{path}, of {created}"),
        Source::Defaults { why } => format!("assumed, not measured: {why}"),
    };
    let _ = writeln!(text, "costs        {from}");
    for level in &plan.prices.levels {
        let _ = writeln!(text, "  {:10} {}", level.name, level.cycles);
    }
    for assumed in &plan.prices.assumed {
        let _ = writeln!(text, "  assumed    {assumed}");
    }
    let _ = writeln!(text, "bounds       {}", plan.bounds.arithmetic);
    if !plan.without.is_empty() {
        let without = records::plan::told(&plan.without);
        let _ = writeln!(
            text,
            "without      {without}; sites are chosen, and gains computed, as if nothing was left out"
        );
    }
    for module in &plan.modules {
        self::module(&mut text, module);
    }
    text.push_str(&no_site(plan));
    for left in left_alone {
        let _ = write!(text, "\n{:12} {}\n  {}\n", "left alone", left.file.display(), left.why);
    }
    text.push_str(&legend(plan));
    text.push_str("\nalternatives\n");
    for other in &plan.alternatives {
        let mark = if other.chosen { "*" } else { " " };
        let _ = writeln!(
            text,
            "{mark} {:18} {:5} sites, gain {} in one pass over all of them",
            other.name, other.sites, other.gain
        );
        let _ = writeln!(text, "  {:18} {}", "", other.what);
    }
    text
}

/// Of a primary without yields.
fn no_site(plan: &Plan) -> String {
    let of_primary = || plan.modules.iter().filter(|module| module.role != Role::Scavenger);
    if of_primary().any(|module| !module.sites.is_empty()) {
        return String::new();
    }
    let libraries = match of_primary().count() {
        1 => "its libraries are not rewritten (--libraries all rewrites them)",
        _ => "nor have its libraries",
    };
    format!("\nthe primary has no yield sites, so scavengers would never run in it; {libraries}\n")
}

fn module(text: &mut String, module: &PlannedModule) {
    let c = module.counts;
    let _ = writeln!(
        text,
        "\n{:12} {}\n  {} sites that prefetch for {} loads, of {} candidates among {} accesses in {} functions",
        module.role.word(),
        module.path,
        c.sites,
        c.sites + c.coalesced,
        c.candidates,
        c.accesses,
        c.functions
    );
    for site in &module.sites {
        let _ = writeln!(text, "+ {}", place(&site.place));
        let shared = match site.with.len() {
            0 => String::new(),
            n => format!(", prefetches for {n} more"),
        };
        let _ = writeln!(
            text,
            "    {}, loop depth {}, saves {}{shared}",
            site.class.word(),
            site.loop_depth,
            saved(&site.live)
        );
        let g = &site.gain;
        let at_once = g.at_once.as_ref().map_or(String::new(), |q| format!(" ÷ {q} at once"));
        let _ = writeln!(text, "    P(miss) {} × {} {}{at_once}", g.p_miss, g.miss_level, g.miss);
        let lost = g.lost_turn.as_ref().map_or(String::new(), |lost| format!(" − lost turn {lost}"));
        let _ = writeln!(text, "    − yield {} − pollution {}{lost} = {}", g.yield_cost, g.pollution, g.net);
    }
    for rejected in &module.rejected {
        let _ = writeln!(text, "- {}", place(&rejected.place));
        let _ = writeln!(
            text,
            "    {}, loop depth {}: {}",
            rejected.class.word(),
            rejected.loop_depth,
            rejected.why
        );
    }
}

/// What the words for loads mean, as far as they are in the plan.
fn legend(plan: &Plan) -> String {
    let sites = plan.modules.iter().flat_map(|module| module.sites.iter().map(|site| site.class));
    let rejected = plan.modules.iter().flat_map(|module| module.rejected.iter().map(|load| load.class));
    let classes: BTreeSet<LoadClass> = sites.chain(rejected).collect();
    let mut text = String::new();
    if classes.is_empty() {
        return text;
    }
    text.push_str("\nloads, by what is known of their addresses; + is a site, - is none\n");
    for class in classes {
        let _ = writeln!(text, "  {:10} {}", class.word(), meaning(class));
    }
    text.push_str(
        "  gain of a site = P(miss) × cost of a miss − cost of a yield − pollution of caches, in cycles;\n  of a scavenger's, − what it loses where it gives way and hits\n",
    );
    text
}

fn meaning(class: LoadClass) -> &'static str {
    match class {
        LoadClass::Chased => "pointer chase: the address comes from the same load, one iteration earlier",
        LoadClass::Pointed => "through a pointer that another load of the loop has loaded",
        LoadClass::Gathered => "gather: the index was loaded from memory",
        LoadClass::Scattered => "the index is computed by more than additions, as in hashing",
        LoadClass::Strided => "moves by the same distance in each iteration: hardware prefetchers predict it",
        LoadClass::Fixed => "the address does not change in its loop",
        LoadClass::Loose => "in no loop of its function, through a pointer that was loaded",
        LoadClass::Unknown => "none of these",
    }
}

fn place(place: &Place) -> String {
    let function = place.function.as_deref().unwrap_or("?");
    let source = place.source.as_ref().map_or(String::new(), |s| format!("  {}:{}", s.file, s.line));
    format!("{:#x}  {}  {function}+{:#x}{source}", place.address, place.instruction, place.offset)
}

fn saved(live: &Live) -> String {
    let mut parts = live.general.clone();
    if live.vectors > 0 {
        parts.push(format!("{} vectors", live.vectors));
    }
    if live.masks > 0 {
        parts.push(format!("{} masks", live.masks));
    }
    if live.flags {
        parts.push("flags".to_owned());
    }
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(" ") }
}
