//! `gleaner profile --system`: all processes of the machine, and what a summary says of them.

use super::words::{file_name, short};
use super::{ProfileArgs, refused};
use crate::console::Console;
use crate::failure::Exit;
use crate::figures::percent;
use crate::figures::table::{draw, row};
use clap::Args;
use insight::Weights;
use lab::stop::Stop;
use records::Document;
use records::profile::{Cgroup, Profile, ProgramShare, System};
use sampler::system::{Machine, SystemRequest};
use std::time::{Duration, Instant};
use units::Bytes;

/// What is asked of all processes.
#[derive(Debug, Args)]
#[command(next_help_heading = "All processes of the machine")]
pub(super) struct SystemArgs {
    /// Sample all processes of the machine, those that begin and end meanwhile, too; as root, or
    /// with `CAP_PERFMON`
    ///
    /// Until --duration is over, or Ctrl-C. Names are found in containers as outside. By default
    /// --budget is 1% of what all CPUs have to give, and the rate at most 199 samples a second of
    /// each CPU. The profiler's own samples are left out; what it costs is told.
    #[arg(long, conflicts_with_all = ["command", "pid", "perf_data", "backend", "from", "to", "no_allocations", "objects_from", "no_probes", "tries", "trace"])]
    pub system: bool,

    /// Only what is in this control group, and in those below it: its path, the name of a systemd
    /// unit, or the id of a container
    #[arg(long, value_name = "CGROUP", requires = "system", conflicts_with_all = ["command", "pid", "perf_data"])]
    pub cgroup: Option<String>,

    /// Go on until SIGTERM or Ctrl-C, and write a record each time that this is over, for example
    /// 60s, to the directory of -o
    #[arg(long, value_name = "TIME", requires_all = ["system", "output"], conflicts_with_all = ["command", "pid", "perf_data"], value_parser = period)]
    pub every: Option<Duration>,

    /// Delete the oldest of these records when all of them are larger than this
    #[arg(long, value_name = "SIZE", requires = "every", default_value = "1G")]
    pub keep: Bytes,
}

/// Shorter ones would cost more than they tell.
const SHORTEST_PERIOD: Duration = Duration::from_secs(1);

fn period(text: &str) -> Result<Duration, String> {
    let period = crate::times::time(text)?;
    if period < SHORTEST_PERIOD { Err("a record takes 1s at least".to_owned()) } else { Ok(period) }
}

pub(super) fn request(args: &ProfileArgs, weights: Weights) -> SystemRequest {
    SystemRequest {
        cgroup: args.system.cgroup.clone(),
        frequency_hz: args.frequency.map(u64::from),
        budget: args.budget / 100.0,
        stacks: !args.left_out.no_stacks,
        reading: READING,
        caches: weights.caches,
        yield_cycles: Some(weights.yield_cycles),
        latencies: weights.latencies,
    }
}

/// The smaller programs of any machine can be named in this CPU time.
const READING: Duration = Duration::from_millis(50);

/// Between two looks at whether it is to end.
pub(super) const ROUND: Duration = Duration::from_millis(500);

pub(super) fn run(args: &ProfileArgs, weights: Weights, console: &Console) -> anyhow::Result<Exit> {
    let request = request(args, weights);
    let stop = Stop::on_signals();
    let mut machine = Machine::watch(&request).map_err(|e| refused(&e))?;
    if args.duration.is_none() {
        console.remark(&format!(
            "all processes are sampled, {} times a second on each CPU; Ctrl-C ends it",
            machine.frequency_hz()
        ));
    }
    let end = args.duration.and_then(|duration| Instant::now().checked_add(duration));
    watch(&mut machine, end, stop);
    let sampled = machine.finish();
    let profile = crate::threads::alone(|| sampled.profile(&request));
    super::written(args, console, &Document::now(profile))
}

/// Samples until this time, or until it is stopped.
pub(super) fn watch(machine: &mut Machine, end: Option<Instant>, stop: Stop) {
    while !stop.asked() {
        let left = end.map_or(ROUND, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            break;
        }
        machine.round(left.min(ROUND));
    }
}

/// The head of a summary, in place of a program's.
pub(super) fn head(profile: &Profile, system: &System) -> String {
    let of = system
        .cgroup
        .as_ref()
        .map_or_else(|| "all processes".to_owned(), |group| format!("control group {group}"));
    let (elapsed, cpu_time) = (profile.summary.elapsed.brief(), profile.summary.cpu_time.brief());
    let cpus = cpus(system.cpus);
    format!(
        "profile of {of}: {elapsed} elapsed, {cpu_time} of CPU time ({} of what {cpus} had to give) in {} sampled processes; {} began, {} ended\n",
        percent(&system.busy),
        profile.program.processes,
        system.began,
        system.ended
    )
}

pub(crate) fn cpus(count: usize) -> String {
    if count == 1 { "1 CPU".to_owned() } else { format!("{count} CPUs") }
}

/// What profiling took, of all CPUs.
pub(super) fn cost(system: &System, in_all: &str) -> String {
    format!(
        "  profiling took {in_all} of what {} had to give, {} of it in the profiler itself\n",
        cpus(system.cpus),
        percent(&system.own)
    )
}

pub(super) fn text(system: &System, top: usize, width: usize) -> String {
    let mut text = programs(system, top, width);
    text.push_str(&groups(system, top, width));
    text.push_str(&kernel(system, top, width));
    text
}

/// What to do next.
pub(super) fn next(system: &System) -> String {
    let stall = |program: &&ProgramShare| program.stall.value().unwrap_or(0.0);
    let most = system.programs.iter().filter(|program| !program.is_kernel_thread);
    match most.max_by(|a, b| stall(a).total_cmp(&stall(b))).filter(|most| stall(most) > 0.0) {
        Some(ProgramShare { pid: Some(pid), program, .. }) => format!(
            "'gleaner profile --pid {pid}' of {program}, which waits most, or 'gleaner profile -- CMD': with its data and latencies"
        ),
        Some(most) => format!(
            "'gleaner profile -- CMD' of {}, which waits most: with its data and latencies",
            most.program
        ),
        None => "no program waits for memory to speak of".to_owned(),
    }
}

fn group(group: &Cgroup) -> String {
    group.brief().map_or_else(|| "-".to_owned(), |name| short(name, 40))
}

fn programs(system: &System, top: usize, width: usize) -> String {
    let mut rows = vec![row(["time", "stall", "kernel", "program", "pid", "control group", "waits most in"])];
    for program in system.programs.iter().take(top) {
        let pid = match (program.pid, program.processes) {
            (Some(pid), _) => pid.to_string(),
            (None, several) => format!("{several} processes"),
        };
        let name =
            if program.is_kernel_thread { format!("[{}]", program.program) } else { program.program.clone() };
        let source = match (&program.file, program.line) {
            (Some(file), Some(line)) => format!(" ({}:{line})", file_name(file)),
            _ => String::new(),
        };
        let place = program.function.as_ref().map(|name| short(name, 40) + &source);
        rows.push(vec![
            percent(&program.time),
            percent(&program.stall),
            percent(&program.in_kernel),
            name,
            pid,
            if program.is_kernel_thread { "kernel thread".to_owned() } else { group(&program.group) },
            place.unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    format!("\n  programs by CPU time (shares of all that was sampled)\n{}", draw(&rows, width))
}

fn groups(system: &System, top: usize, width: usize) -> String {
    if system.cgroups.len() < 2 {
        return String::new();
    }
    let mut rows = vec![row(["time", "stall", "kernel", "processes", "control group"])];
    for one in system.cgroups.iter().take(top) {
        rows.push(vec![
            percent(&one.time),
            percent(&one.stall),
            percent(&one.in_kernel),
            one.processes.to_string(),
            one.group.cgroup.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    format!("\n  control groups by CPU time\n{}", draw(&rows, width))
}

fn kernel(system: &System, top: usize, width: usize) -> String {
    if system.kernel.is_empty() {
        return String::new();
    }
    let mut rows = vec![row(["time", "function of the kernel"])];
    for function in system.kernel.iter().take(top.min(5)) {
        let name = function.function.as_deref().unwrap_or("? (the kernel tells its symbols to root alone)");
        rows.push(row([&percent(&function.time), name]));
    }
    format!("\n  where the kernel's own time went\n{}", draw(&rows, width))
}
