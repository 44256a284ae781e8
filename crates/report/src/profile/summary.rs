//! What to do about the waiting, and where the CPU time went.

use crate::figure::stack::{Part, stack};
use crate::parts::{Cell, Figure, Out, Table};
use crate::text::{base, escape, name, percent, quantity, share};
use records::profile::{FindingKind, Profile, ProgramEnd};
use units::{Estimate, Quantity};

/// Smaller parts cannot be seen; the table has all.
const LEAST: f64 = 0.0005;

pub(super) fn findings(profile: &Profile, out: &mut Out) {
    out.section("findings", "Findings");
    let summary = &profile.summary;
    let bound = summary.memory_bound.value();
    let class = if bound.is_some_and(|b| b > 0.3) { "noisy" } else { "quiet" };
    let command = if profile.system.is_some() {
        "all processes of the machine".to_owned()
    } else if profile.program.command.is_empty() {
        profile.program.pid.map_or_else(|| "a process".to_owned(), |pid| format!("process {pid}"))
    } else {
        profile.program.command.join(" ")
    };
    let command = name(&crate::text::cut(&command, 400));
    if profile.sampling.backend.samples_accesses() {
        let what = super::accesses::what(profile);
        out.html.push_str(&format!(
            "<div class=\"verdict quiet\"><p><strong>{what}</strong></p><p>{command}; {}.</p></div>\n",
            ended(profile)
        ));
    } else {
        out.html.push_str(&format!(
            "<div class=\"verdict {class}\"><p><strong>{} of the CPU time was spent waiting for loads.</strong></p>\
             <p>{command} ran for {} and used {} of CPU time; {}.</p></div>\n",
            share(&summary.memory_bound),
            quantity(&summary.elapsed),
            quantity(&summary.cpu_time),
            ended(profile)
        ));
    }
    let items = profile.findings.iter().map(|finding| {
        let kind = match finding.kind {
            FindingKind::FalseSharing => "False sharing",
            FindingKind::TrueSharing => "Shared data",
            FindingKind::FirstTouch => "First touch",
            FindingKind::HugePages => "Huge pages",
            FindingKind::Prefetch => "Prefetch",
            FindingKind::Chain => "Chain",
            FindingKind::Stores => "Stores",
            FindingKind::Pad => "Layout",
            FindingKind::Bandwidth => "Bandwidth",
            FindingKind::Placement => "Placement",
            FindingKind::Harvest => "Harvest",
        };
        let place = match (&finding.function, &finding.file, finding.line) {
            (Some(function), Some(file), Some(line)) => {
                format!(" In {} ({}:{line}).", name(function), escape(base(file)))
            }
            (Some(function), _, _) => format!(" In {}.", name(function)),
            _ => String::new(),
        };
        let of = if profile.sampling.backend.samples_accesses() {
            "latency of all sampled loads"
        } else {
            "CPU time"
        };
        format!(
            "<strong>{kind}</strong>: {}.{place} It would save, or leave to other work, {} of the {of} at most.",
            escape(&finding.says),
            share(&finding.gain)
        )
    });
    let items: Vec<String> = items.collect();
    if items.is_empty() {
        out.say("The record lists no finding: nothing that promises to save much was seen.");
    }
    out.list(&items);
    super::refusals(&profile.refusals, out);
}

fn ended(profile: &Profile) -> String {
    match &profile.program.ended {
        ProgramEnd::Exited { code } => format!("it ended with code {code}"),
        ProgramEnd::Killed { signal } => format!("signal {signal} ended it"),
        ProgramEnd::StillRunning => "it ran on when the profiler left it".to_owned(),
        ProgramEnd::Unknown => "how it ended is not known".to_owned(),
    }
}

pub(super) fn time(profile: &Profile, out: &mut Out) {
    out.section("time", "Where the CPU time went");
    let s = &profile.summary;
    let level = &s.by_level;
    // The levels are parts of what lies beyond L2, and that of the time spent waiting for loads:
    // what the known parts leave is of unknown level.
    let beyond = remainder(&s.by_level.beyond_l2, &[&level.l3, &level.dram, &level.dirty, &level.remote]);
    let unknown = remainder(&s.memory_bound, &[&level.l1, &level.l2, &level.beyond_l2]);
    let waits = [
        ("waiting for L1", level.l1.estimate()),
        ("waiting for L2", level.l2.estimate()),
        ("waiting for L3", level.l3.estimate()),
        ("waiting for DRAM", level.dram.estimate()),
        ("waiting for lines that other threads write", level.dirty.estimate()),
        ("waiting for another node", level.remote.estimate()),
        ("waiting for L3 or DRAM, not known which", beyond),
        ("waiting for loads of unknown level", unknown),
        ("waiting for stores", s.stores.estimate()),
        ("in the kernel", s.in_kernel.estimate()),
        ("computing", s.computing.estimate()),
        ("not attributed", s.not_attributed.estimate()),
    ];
    let mut parts: Vec<Part> = Vec::new();
    for (what, estimate) in waits {
        let Some(e) = estimate.filter(|e| e.value > LEAST) else { continue };
        parts.push(Part { name: what.to_owned(), share: e.value, shown: percent(e) });
    }
    let mut table = Table::with_head("Where the CPU time went", &["what", "share of the CPU time"]);
    let rows: [(&str, &Quantity); 14] = [
        ("waiting for loads", &s.memory_bound),
        ("… of L1", &level.l1),
        ("… of L2", &level.l2),
        ("… of L3", &level.l3),
        ("… of DRAM", &level.dram),
        ("… of what lies beyond L2, in all", &level.beyond_l2),
        ("… of unknown level", &level.unresolved),
        ("waiting for stores", &s.stores),
        ("computing", &s.computing),
        ("in the kernel", &s.in_kernel),
        ("… in system calls", &s.system_calls),
        ("… in page faults and interrupts", &s.page_faults),
        ("not attributed", &s.not_attributed),
        ("overhead of profiling", &s.overhead),
    ];
    for (what, q) in rows {
        table.row(vec![Cell::text(what), Cell::share(q)]);
    }
    for why in &s.not_attributed_because {
        table.row(vec![Cell::text(&format!("not attributed: {}", why.why)), Cell::share(&why.time)]);
    }
    if parts.is_empty() {
        out.missing("No share of the CPU time could be resolved.");
        out.table(&table);
        return;
    }
    let title = match s.memory_bound.estimate() {
        Some(bound) => format!("{} of the CPU time waits for loads", percent(bound)),
        None => "Where the CPU time went".to_owned(),
    };
    let svg = stack(&title, &parts);
    let differs =
        "another input touches other data; on another machine other levels hold it. Levels are modelled.";
    out.figure(Figure { id: "time", title, svg, table, differs });
    out.say(&format!("Average latency of the loads that were probed: {}.", quantity(&s.average_latency)));
}

/// What a sum has beyond the parts of it that are known.
fn remainder(sum: &Quantity, parts: &[&Quantity]) -> Option<Estimate> {
    let known = parts.iter().filter_map(|part| part.estimate());
    let rest = known.fold(sum.estimate()?, Estimate::minus);
    let cut = |x: f64| x.max(0.0);
    Some(Estimate::new(cut(rest.value), cut(rest.lo), cut(rest.hi)))
}

pub(super) fn sampling(profile: &Profile, out: &mut Out) {
    out.section("sampling", "How samples were taken");
    let s = &profile.sampling;
    let mut table = Table::with_head("How samples were taken", &["what", "figure"]);
    table.row(vec![Cell::text("samples"), Cell::count(s.samples)]);
    table.row(vec![Cell::text("lost"), Cell::count(s.lost)]);
    table.row(vec![Cell::text("frequency"), Cell::quantity(&s.frequency)]);
    table.row(vec![
        Cell::text("the kernel's time is sampled"),
        Cell::text(if s.sees_kernel { "yes" } else { "no" }),
    ]);
    table.row(vec![
        Cell::text("a sample lands one instruction behind"),
        Cell::share(&s.calibration.one_behind),
    ]);
    table.row(vec![Cell::text("a sample costs"), Cell::quantity(&s.calibration.sample_cost)]);
    table.row(vec![Cell::text("a probe costs"), Cell::quantity(&s.calibration.probe_cost)]);
    table.row(vec![Cell::text("processes"), Cell::count(profile.program.processes as u64)]);
    table.row(vec![Cell::text("threads"), Cell::count(profile.program.threads as u64)]);
    out.table(&table);
}
