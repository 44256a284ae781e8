//! Which programs, control groups and functions of the kernel the CPU time of a machine went to.

use crate::figure::bars::{Bar, bars};
use crate::parts::{Cell, Figure, Out, Table};
use crate::text::{base, name, percent, share};
use records::profile::{Cgroup, Profile, ProgramShare};

/// Bars of the figure: what is below is small.
const DRAWN: usize = 14;

pub(super) fn sections(profile: &Profile, out: &mut Out) {
    let Some(system) = &profile.system else { return };
    out.section("programs", "Programs");
    out.say(&format!(
        "All processes were sampled{}: what they used is {} of what {} CPUs had to give; {} processes began and {} ended \
         meanwhile. The profiler itself used {}, which is in no other figure.",
        system.cgroup.as_ref().map_or_else(String::new, |group| format!(" that are in {}", name(group))),
        share(&system.busy),
        system.cpus,
        system.began,
        system.ended,
        share(&system.own)
    ));
    let head = [
        "CPU time",
        "waiting",
        "in the kernel",
        "program",
        "process",
        "control group",
        "waits most in",
        "samples",
    ];
    let mut table = Table::with_head("Programs, most CPU time first", &head);
    let mut drawn = Vec::new();
    for program in &system.programs {
        table.row(vec![
            Cell::share(&program.time),
            Cell::share(&program.stall),
            Cell::share(&program.in_kernel),
            Cell::html(name(&called(program))),
            Cell::text(&match program.pid {
                Some(pid) => pid.to_string(),
                None => format!("{} processes", program.processes),
            }),
            Cell::html(group(&program.group)),
            Cell::html(place(program)),
            Cell::count(program.samples),
        ]);
        if let Some(value) = program.stall.estimate().filter(|stall| drawn.len() < DRAWN && stall.value > 0.0)
        {
            drawn.push(Bar {
                name: called(program),
                value: value.scaled(100.0),
                shown: percent(value),
                class: 0,
            });
        }
    }
    if drawn.is_empty() {
        out.table(&table);
    } else {
        drawn.sort_by(|a, b| b.value.value.total_cmp(&a.value.value));
        let title = format!("{} waits for loads most", drawn[0].name);
        let svg = bars(&title, "% of the CPU time that was sampled", &drawn);
        let differs = "what else runs on a machine is another mixture each time.";
        out.figure(Figure { id: "programs", title, svg, table, differs });
    }
    let mut table = Table::with_head(
        "Control groups, most CPU time first",
        &["CPU time", "waiting", "in the kernel", "processes", "control group", "container or unit"],
    );
    for one in &system.cgroups {
        let also = one.group.container.as_deref().or(one.group.unit.as_deref()).unwrap_or_default();
        table.row(vec![
            Cell::share(&one.time),
            Cell::share(&one.stall),
            Cell::share(&one.in_kernel),
            Cell::count(one.processes),
            Cell::html(name(one.group.cgroup.as_deref().unwrap_or("not known"))),
            Cell::html(name(also)),
        ]);
    }
    out.table(&table);
    if system.kernel.is_empty() {
        return;
    }
    let mut table = Table::with_head("Functions of the kernel", &["CPU time", "function", "samples"]);
    for function in &system.kernel {
        table.row(vec![
            Cell::share(&function.time),
            Cell::html(name(function.function.as_deref().unwrap_or("the kernel did not tell its symbols"))),
            Cell::count(function.samples),
        ]);
    }
    out.table(&table);
}

fn called(program: &ProgramShare) -> String {
    if program.is_kernel_thread { format!("[{}]", program.program) } else { program.program.clone() }
}

fn group(group: &Cgroup) -> String {
    group.brief().map_or_else(String::new, name)
}

fn place(program: &ProgramShare) -> String {
    let Some(function) = &program.function else { return String::new() };
    match (&program.file, program.line) {
        (Some(file), Some(line)) => format!("{} ({}:{line})", name(function), name(base(file))),
        _ => name(function),
    }
}
