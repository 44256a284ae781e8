//! The verdict: what machine this is, how far its figures can be trusted, what is odd.

use crate::parts::{Cell, Out, Table, list};
use crate::text::{escape, quantity};
use records::host::{Fact, Host};
use records::machine::{Clock, Effort, FleetProbe, Machine, Outcome, Status, Verdict};

pub(super) fn section(machine: &Machine, out: &mut Out) {
    out.section("verdict", "The verdict");
    let grade = &machine.run.grade;
    let (class, word, means) = match grade.verdict {
        Verdict::Quiet => ("quiet", "Quiet", "nothing relevant interfered"),
        Verdict::Fair => ("fair", "Fair", "something interfered; the figures hold, with wider intervals"),
        Verdict::Noisy => ("noisy", "Noisy", "do not compare these figures before reading the reasons"),
    };
    let reasons: Vec<String> = grade.reasons.iter().map(|r| escape(r)).collect();
    let reasons = list(&reasons);
    let missing = missing(machine);
    let missing = match missing.len() {
        0 => String::new(),
        _ => format!("<p><strong>Missing</strong>: {}.</p>", missing.join("; ")),
    };
    out.html.push_str(&format!(
        "<div class=\"verdict {class}\">{missing}<p><strong>{word}</strong>: {means}.</p>{reasons}<p>{}</p></div>\n",
        summary(machine)
    ));
    if machine.run.interrupted {
        out.missing("The run was stopped before its end; what it had measured is shown.");
    }
    out.html.push_str("<h4>What is odd</h4>\n");
    let odd = odd(machine);
    if odd.is_empty() {
        out.say("Nothing: where the host makes a claim and this run measured it, the two agree.");
    } else {
        out.list(&odd);
    }
    host(&machine.host, out);
    run(machine, out);
}

/// What the run was asked for and does not have.
fn missing(machine: &Machine) -> Vec<String> {
    fn told<T>(name: &str, outcome: Option<&Outcome<T>>) -> Option<String> {
        let outcome = outcome?;
        let what = match outcome.status {
            Status::Done if outcome.result.is_some() => return None,
            Status::Done => "no result",
            Status::Interrupted => "stopped before its end",
            Status::NotPossible => "not possible on this host",
            Status::Failed => "failed",
        };
        Some(format!("{name} ({what})"))
    }
    let all = &machine.experiments;
    let mut missing: Vec<String> = [
        told("latency", all.latency.as_ref()),
        told("tlb", all.tlb.as_ref()),
        told("mlp", all.mlp.as_ref()),
        told("rob", all.rob.as_ref()),
        told("stride", all.stride.as_ref()),
        told("prefetch", all.prefetch.as_ref()),
        told("threads", all.threads.as_ref()),
        told("smt", all.smt.as_ref()),
        told("bandwidth", all.bandwidth.as_ref()),
        told("c2c", all.c2c.as_ref()),
        told("numa", all.numa.as_ref()),
        told("windows", all.windows.as_ref()),
        told("yield", all.yields.as_ref()),
        told("clock", all.clock.as_ref()),
        told("probe", all.probe.as_ref()),
    ]
    .into_iter()
    .flatten()
    .collect();
    if all.latency.as_ref().is_some_and(|outcome| outcome.result.is_some()) {
        let memory = machine.levels.iter().find(|level| level.name == "DRAM");
        if machine.levels.is_empty() {
            missing.push("levels of caches and memory (none was resolved)".to_owned());
        } else if memory.is_none_or(|level| level.latency.ns.estimate().is_none()) {
            missing.push("the latency of memory (not resolved)".to_owned());
        }
    }
    missing
}

fn fact<T: ToString>(fact: &Fact<T>) -> String {
    fact.get().map_or_else(|| "unknown".to_owned(), |value| escape(&value.to_string()))
}

fn summary(machine: &Machine) -> String {
    let level = |name: &str| {
        let found = machine.levels.iter().find(|l| l.name == name)?;
        found.latency.ns.estimate().map(|_| quantity(&found.latency.ns))
    };
    let mut words = format!("{}.", fact(&machine.host.processor.name));
    if let (Some(first), Some(memory)) = (level("L1"), level("DRAM")) {
        words.push_str(&format!(" A load takes {first} from the first cache and {memory} from memory."));
    }
    let mlp = machine.experiments.mlp.as_ref().and_then(|o| o.result.as_ref());
    if let Some(kind) = mlp.and_then(|m| m.kinds.first()) {
        if kind.sustained.estimate().is_some() {
            words.push_str(&format!(
                " It keeps {} misses under way at once on average.",
                quantity(&kind.sustained)
            ));
        }
    }
    let bandwidth = machine.experiments.bandwidth.as_ref().and_then(|o| o.result.as_ref());
    if let Some(result) = bandwidth.filter(|b| b.platform_maximum.estimate().is_some()) {
        words.push_str(&format!(
            " Memory moves at most {} ({}).",
            quantity(&result.platform_maximum),
            escape(&result.platform_maximum_by)
        ));
    }
    words
}

/// Claims that what was measured, or another claim, contradicts; and levels with remarks.
fn odd(machine: &Machine) -> Vec<String> {
    let mut odd = Vec::new();
    for contradiction in &machine.host.contradictions {
        let claims: Vec<_> = contradiction
            .claims
            .iter()
            .map(|(source, what)| format!("{} says {}", escape(source), escape(what)))
            .collect();
        odd.push(format!(
            "{}: {}; {}",
            escape(&contradiction.about),
            claims.join("; "),
            escape(&contradiction.judgement)
        ));
    }
    for level in &machine.levels {
        if let Some(note) = &level.note {
            odd.push(format!(
                "{}: measured {}, where {} is claimed: {}",
                escape(&level.name),
                quantity(&level.size),
                quantity(&level.size_claimed),
                escape(note)
            ));
        }
    }
    let tlb = machine.experiments.tlb.as_ref().and_then(|o| o.result.as_ref());
    for kind in tlb.iter().flat_map(|t| &t.kinds) {
        for level in &kind.levels {
            let (Some(found), Some(claimed)) = (level.entries.estimate(), level.claimed.value()) else {
                continue;
            };
            if !(found.lo * 0.95..=found.hi * 1.05).contains(&claimed) {
                odd.push(format!(
                    "TLB level {} for {} pages: {} entries measured, {} claimed",
                    level.level,
                    escape(&kind.pages.asked),
                    quantity(&level.entries),
                    crate::text::number(claimed)
                ));
            }
        }
    }
    let threads = machine.experiments.threads.as_ref().and_then(|o| o.result.as_ref());
    for sharing in threads.iter().flat_map(|t| &t.sharing) {
        if let (Some(shared), Some(claimed)) = (sharing.shared, sharing.claimed) {
            if shared != claimed {
                let [a, b] = sharing.cpus;
                let word = |yes| if yes { "share" } else { "do not share" };
                odd.push(format!(
                    "CPUs {a} and {b} {} {}, by measurement; the host claims that they {} it",
                    word(shared),
                    escape(&sharing.level),
                    if claimed { "share" } else { "do not share" }
                ));
            }
        }
    }
    odd
}

fn host(host: &Host, out: &mut Out) {
    let mut table = Table::with_head("The host, as it describes itself", &["what", "claimed"]);
    let rows = [
        ("processor", fact(&host.processor.name)),
        ("microarchitecture", fact(&host.processor.microarchitecture)),
        ("microcode", fact(&host.processor.microcode)),
        ("hypervisor", fact(&host.virtualization.hypervisor)),
        ("container", escape(host.virtualization.container.as_deref().unwrap_or("none seen"))),
        ("kernel", fact(&host.identity.kernel)),
        ("distribution", fact(&host.identity.distribution)),
        ("product", fact(&host.identity.product)),
        ("CPUs online", fact(&host.topology.threads)),
        ("cores", fact(&host.topology.cores)),
        ("sockets", fact(&host.topology.sockets)),
        ("NUMA nodes", host.nodes.len().to_string()),
        ("memory", fact(&host.memory.total)),
    ];
    for (name, value) in rows {
        table.row(vec![Cell::text(name), Cell::html(value)]);
    }
    out.details("The host, as it describes itself", &table.html(false));
}

fn run(machine: &Machine, out: &mut Out) {
    let (run, blocks) = (&machine.run, &machine.run.blocks);
    let effort = match run.effort {
        Effort::Quick => "quick",
        Effort::Normal => "normal",
        Effort::Thorough => "thorough",
    };
    let mut table = Table::with_head("The run", &["what", "value"]);
    let rows = [
        ("effort", effort.to_owned()),
        ("CPU", run.cpu.to_string()),
        ("seed of all random choices", run.seed.to_string()),
        ("time", format!("{:.0} s", run.seconds)),
        ("blocks that count", blocks.valid.to_string()),
        ("void blocks", blocks.voided.to_string()),
        ("void: time stolen by the hypervisor", blocks.stolen.to_string()),
        ("void: interrupted by a task switch", blocks.switched.to_string()),
        ("void: page fault", blocks.faulted.to_string()),
        ("void: the core clock moved", blocks.clock_moved.to_string()),
        ("valid, beside other tasks", blocks.in_company.to_string()),
        ("valid, beside another hyperthread", blocks.core_shared.to_string()),
    ];
    for (name, value) in rows {
        table.row(vec![Cell::text(name), Cell::plain(value)]);
    }
    out.details("How the run went", &table.html(false));
}

pub(super) fn clocks(clock: &Clock, out: &mut Out) {
    let mut table = Table::with_head("The clocks", &["what", "figure"]);
    let rows = [
        ("time stamp counter", &clock.tsc),
        ("the same, claimed", &clock.tsc_claimed),
        ("its step", &clock.granularity),
        ("cost of reading it", &clock.read_cost),
        ("core clock while busy", &clock.core),
        ("core cycles in a tick", &clock.cycles_per_tick),
        ("the same by multiplications", &clock.cycles_per_tick_by_muls),
        ("how much the core clock moved", &clock.core_wander),
        ("drift against the kernel's clock", &clock.drift),
    ];
    for (name, q) in rows {
        table.row(vec![Cell::text(name), Cell::quantity(q)]);
    }
    out.table(&table);
}

/// What a fleet probe measured: figures to hold against those of other hosts.
pub(super) fn probe(probe: &FleetProbe, out: &mut Out) {
    let mut table = Table::with_head("The probe", &["what", "figure"]);
    for (name, q) in probe.figures() {
        table.row(vec![Cell::text(&name.replace('_', " ")), Cell::quantity(q)]);
    }
    for node in &probe.nodes {
        table.row(vec![
            Cell::text(&format!("node {}, bandwidth", node.node)),
            Cell::quantity(&node.bandwidth),
        ]);
        table
            .row(vec![Cell::text(&format!("node {}, latency", node.node)), Cell::quantity(&node.latency.ns)]);
    }
    out.table(&table);
}
