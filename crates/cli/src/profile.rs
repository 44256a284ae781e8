//! `gleaner profile`: which loads of a program stall, and on which data.

mod machine;
mod summary;

use crate::console::Console;
use crate::failure::{Exit, Refusal};
use crate::save;
use clap::{Args, ValueEnum};
use lab::stop::Stop;
use records::Document;
use records::profile::ProgramEnd;
use sampler::{Request, SampleError, Subject};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Find the loads that a program waits for, and the data that they read
///
/// Samples the CPU time of all threads and children of a program, which stays unmodified; no PMU is
/// needed. A sample lands right behind the instruction that the core waits for, and its registers
/// tell the address that was read. The program's standard streams are its own; the summary goes to
/// standard error. Levels are modelled from the addresses and the sizes of the caches; latencies
/// are not measured.
#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    /// How to sample
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    backend: Backend,

    /// Attach to this process and all of its threads, until it ends, --duration is over, or Ctrl-C
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pid: Option<u32>,

    /// Samples a second of each thread's CPU time
    #[arg(long, value_name = "HZ", default_value = "4000", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    frequency: u32,

    /// Stop sampling after this time, for example 10s; the program runs on
    #[arg(long, value_name = "TIME", value_parser = time)]
    duration: Option<Duration>,

    /// Leave out what was sampled before this time of the run
    #[arg(long, value_name = "TIME", value_parser = time)]
    from: Option<Duration>,

    /// Leave out what was sampled after this time of the run
    #[arg(long, value_name = "TIME", value_parser = time)]
    to: Option<Duration>,

    /// Leave out who calls what: no stacks are copied
    #[arg(long)]
    no_stacks: bool,

    /// Leave out where memory is allocated: no library is preloaded into the program
    #[arg(long)]
    no_allocations: bool,

    /// How many loads, functions and objects the summary shows
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,

    /// Write the record to this file ('-' for standard output; then the program's standard output
    /// goes to standard error)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The program, with its arguments
    #[arg(value_name = "CMD", required_unless_present = "pid", trailing_var_arg = true)]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Backend {
    /// The best one that works here: the clock, or else signals
    Auto,
    /// A timer of CPU time, by the kernel's performance events
    Clock,
    /// A timer for each thread and a preloaded library that takes its signals: where events are
    /// forbidden, as in most containers. At most one sample for each tick of the kernel
    Signal,
}

pub(crate) fn run(args: &ProfileArgs, console: &Console) -> anyhow::Result<Exit> {
    let console = &console.with_output(args.output.as_deref());
    if let Some(path) = args.output.as_deref().filter(|path| path.as_os_str() != "-") {
        save::check(path)?;
    }
    let window = match (args.from, args.to) {
        (None, None) => None,
        (from, to) => Some((from.unwrap_or_default(), to.unwrap_or(Duration::MAX))),
    };
    if let Some((from, to)) = window.filter(|(from, to)| from >= to) {
        let why = format!("{from:?} is not before {to:?}");
        return Err(Refusal::wrong_use("--from and --to", why).into());
    }
    let weights = machine::Weights::of(&host::read(Path::new("/")));
    let request = Request {
        subject: match args.pid {
            Some(pid) => Subject::Process(pid),
            None => Subject::Command(args.command.clone()),
        },
        backend: match args.backend {
            Backend::Auto => sampler::Backend::Auto,
            Backend::Clock => sampler::Backend::Clock,
            Backend::Signal => sampler::Backend::Signal,
        },
        frequency_hz: u64::from(args.frequency),
        duration: args.duration,
        window,
        stacks: !args.no_stacks,
        allocations: !args.no_allocations,
        output_to_error: console.json(),
        inherited: lab::inherited::at_start(),
        caches: weights.caches,
        yield_cycles: Some(weights.yield_cycles),
    };
    // The program is forked before: it keeps its signals as they were.
    let stop = Stop::on_signals();
    let profile =
        crate::threads::shared(|| sampler::session::run(&request, stop)).map_err(|e| refused(&e))?;
    let document = Document::now(profile);
    let kept = args.output.as_deref().map_or(Ok(()), |path| save::record(path, &document));
    console
        .remark(summary::text(&document.body, args.top, args.output.as_deref(), console.width()).trim_end());
    console.document(&document)?;
    kept?;
    // A program that failed is the thing measured, and it failed.
    Ok(match document.body.program.ended {
        ProgramEnd::Exited { code: 0 } | ProgramEnd::StillRunning | ProgramEnd::Unknown => Exit::Done,
        ProgramEnd::Exited { .. } | ProgramEnd::Killed { .. } => Exit::Failed,
    })
}

fn refused(error: &SampleError) -> Refusal {
    let text = error.to_string();
    let (what, why) = text.split_once(": ").unwrap_or(("profile", &text));
    match error {
        SampleError::NotStarted { .. } => Refusal::wrong_use(what, why),
        SampleError::NotAttached { .. } => Refusal::wrong_use(what, why)
            .would_help("name a process that runs, and that you may trace (its owner, or root)"),
        SampleError::TooManyFiles { .. } => {
            Refusal::not_possible_here(what, why).would_help("a higher limit on open files: ulimit -n")
        }
        SampleError::NotAllowed { .. } => Refusal::not_possible_here(what, why).would_help(
            "start the program under the profiler, which then samples by signals; or sysctl kernel.perf_event_paranoid=2 or lower; in a container, a seccomp profile that lets perf_event_open through",
        ),
        SampleError::SignalsNotAttached => Refusal::wrong_use(what, why),
        SampleError::NoSignals { .. } => Refusal::not_possible_here(what, why)
            .would_help("perf events: sysctl kernel.perf_event_paranoid=2 or lower; in a container, a seccomp profile that lets perf_event_open through"),
        SampleError::NoRing { .. } => Refusal::not_possible_here(what, why)
            .would_help("a higher limit on locked memory: ulimit -l, or sysctl kernel.perf_event_mlock_kb"),
    }
}

/// `10s`, `500ms`, `2min`; a number alone is seconds.
fn time(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 =
        number.parse().map_err(|_| "a time is a number and a unit, as 10s or 500ms".to_owned())?;
    let seconds = match unit {
        "" | "s" => number,
        "ms" => number / 1e3,
        "min" => number * 60.0,
        _ => return Err(format!("{unit} is no unit of time; ms, s and min are")),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| "too long".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(time("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(time("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(time("2min"), Ok(Duration::from_secs(120)));
        for wrong in ["", "s", "-1s", "10h", "1e3s", "99999999999999999999999s"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
