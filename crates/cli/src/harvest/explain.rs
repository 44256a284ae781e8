//! A plan, explained: what it goes by, which loads give way and why, which do not and why, and what else was weighed.

use ::harvest::session::LeftAlone;
use records::plan::{Live, Place, Plan, PlannedModule, Role, Source};
use std::fmt::Write;

pub(super) fn plan(plan: &Plan, left_alone: &[LeftAlone]) -> String {
    let mut text = String::new();
    let from = match &plan.prices.source {
        Source::Machine { path, created } => format!("{path}, of {created}"),
        Source::Defaults { why } => format!("assumed, not measured: {why}"),
    };
    let _ = writeln!(text, "prices       {from}");
    for level in &plan.prices.levels {
        let _ = writeln!(text, "  {:10} {}", level.name, level.cycles);
    }
    for assumed in &plan.prices.assumed {
        let _ = writeln!(text, "  assumed    {assumed}");
    }
    let _ = writeln!(text, "bounds       {}", plan.bounds.arithmetic);
    if !plan.without.is_empty() {
        let without = records::plan::told(&plan.without);
        let _ = writeln!(text, "without      {without}; sites are chosen, and gains told, as with all");
    }
    for module in &plan.modules {
        text.push_str(&self::module(module));
    }
    text.push_str(&nobody(plan));
    for left in left_alone {
        let _ = write!(text, "\n{:12} {}\n  {}\n", "left alone", left.file.display(), left.why);
    }
    text.push_str("\nalternatives\n");
    for other in &plan.alternatives {
        let mark = if other.chosen { "*" } else { " " };
        let _ = writeln!(text, "{mark} {:18} {:5} sites, gain {}", other.name, other.sites, other.gain);
        let _ = writeln!(text, "  {:18} {}", "", other.what);
    }
    text
}

/// Of a primary whose waits nobody would use.
fn nobody(plan: &Plan) -> String {
    let of_primary = || plan.modules.iter().filter(|module| module.role != Role::Scavenger);
    if of_primary().any(|module| !module.sites.is_empty() || !module.spins.is_empty()) {
        return String::new();
    }
    let libraries = match of_primary().count() {
        1 => "and its libraries are not rewritten (--libraries)",
        _ => "nor does one of those in its libraries",
    };
    format!("\nnobody would come aboard: none of the primary's own loads gives way, {libraries}\n")
}

fn module(module: &PlannedModule) -> String {
    let mut text = String::new();
    let c = module.counts;
    let _ = writeln!(
        text,
        "\n{:12} {}\n  {} sites that serve {} loads, of {} candidates among {} accesses in {} functions",
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
            n => format!(", fetches {n} more"),
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
        let _ = writeln!(text, "    − yield {} − pollution {} = {}", g.yield_cost, g.pollution, g.net);
    }
    for spin in &module.spins {
        let _ = writeln!(text, "+ {}", place(&spin.place));
        let _ = writeln!(
            text,
            "    waits for {} by turning round, loop depth {}, saves {}",
            spin.waits_for.word(),
            spin.loop_depth,
            saved(&spin.live)
        );
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
    text
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
