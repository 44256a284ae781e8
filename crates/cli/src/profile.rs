//! `gleaner profile`: which loads of a program stall, and on which data.

mod every;
mod file;
mod latencies;
mod stored;
mod summary;
mod system;
mod traced;
mod words;

pub(crate) use self::system::cpus;

use crate::console::Console;
use crate::failure::{Exit, Refusal};
use crate::save;
use crate::times::time;
use ::harvest::find::program::Program;
use clap::{Args, ValueEnum};
use insight::Weights;
use lab::stop::Stop;
use records::Document;
use records::host::Host;
use records::profile::{CallTree, Profile, ProgramEnd};
use records::run::Refused;
use sampler::{FindsOut, Output, Request, SampleError, Subject};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::{kept_records, machine_record};
use units::Bytes;

/// Find the loads that a program waits for, and the data that they read
///
/// Samples the CPU time of all threads and children of a program, which stays unmodified; no PMU is
/// needed. A sample lands right behind the instruction that the core waits for, and its registers
/// tell the address that was read. Loads that stall most are stopped now and then and timed, in
/// programs that the profiler starts; so their latencies are measured. Levels are modelled from the
/// addresses, the sizes of the caches and these latencies. The program's standard streams are its
/// own; the summary goes to standard error.
///
/// Code that a program makes while it runs is read from its memory. java and node are asked for
/// its functions and lines; other programs may write /tmp/perf-PID.map, as jcmd PID
/// Compiler.perfmap and python3 -X perf do.
#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    /// How to sample
    #[arg(long, value_enum, default_value_t = Backend::Auto)]
    backend: Backend,

    /// Attach to this process and all of its threads, until it ends, --duration is over, or Ctrl-C
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pid: Option<u32>,

    /// Read samples that perf record took ('-' for standard input)
    ///
    /// Of cpu-clock or cycles; or loads and stores that perf mem record, perf c2c record or perf
    /// record -d -W sampled by Intel PEBS, AMD IBS or Arm SPE: these are shown by their latency.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "pid", "backend", "frequency", "budget", "duration", "no_allocations", "no_code_names", "no_probes"])]
    perf_data: Option<PathBuf>,

    #[command(flatten)]
    stored: stored::StoredArgs,

    /// Samples a second of each thread's CPU time [default: as many as --budget allows, at most
    /// 4000]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    frequency: Option<u32>,

    /// Let profiling take at most this part of the program's time: a third of it for the samples,
    /// whose cost on this machine is measured first; with --system, 1% of all CPUs' time unless it
    /// is said otherwise
    #[arg(long, value_name = "PERCENT", default_value = "3", default_value_if("system", "true", "1"), value_parser = budget)]
    budget: f64,

    /// Stop sampling after this time, for example 10s; the program runs on
    #[arg(long, value_name = "TIME", value_parser = time)]
    duration: Option<Duration>,

    /// Leave out what was sampled before this time of the run, or since attaching
    #[arg(long, value_name = "TIME", value_parser = time)]
    from: Option<Duration>,

    /// Leave out what was sampled after this time of the run; with --pid, end then
    #[arg(long, value_name = "TIME", value_parser = time)]
    to: Option<Duration>,

    #[command(flatten)]
    left_out: LeftOut,

    #[command(flatten)]
    system: system::SystemArgs,

    /// Then run the program again, with and without changes that the profile proposes and that need
    /// no source: huge pages, prefetches ahead of loads, cache lines of their own for what threads
    /// allocate, other CPUs; and say whether it is faster
    ///
    /// Each run begins anew with the same arguments; standard input must be a file, or is empty.
    /// What the runs print is compared and not shown.
    #[arg(long = "try", requires = "command")]
    tries: bool,

    /// Pairs of runs for each change
    #[arg(long, value_name = "N", requires = "tries", default_value_t = 10, value_parser = clap::value_parser!(u16).range(2..=1000))]
    pairs: u16,

    #[command(flatten)]
    trace: traced::TraceArgs,

    /// How many loads, functions and objects the summary shows
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,

    /// Write the record to this file ('-' for standard output; then the program's standard output
    /// goes to standard error)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The program, with its arguments
    #[arg(value_name = "CMD", required_unless_present_any = ["pid", "perf_data", "pprof", "otlp", "collapsed", "system"], trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// What is not found out.
#[derive(Clone, Copy, Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags of a command line")]
struct LeftOut {
    /// Leave out callers: no stacks are copied
    #[arg(long)]
    no_stacks: bool,

    /// Leave out where memory is allocated: no library is preloaded into the program
    #[arg(long)]
    no_allocations: bool,

    /// Leave out where memory is allocated in pieces smaller than this, for example 1K [default: as
    /// many of all sizes are told as the budget allows]
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["no_allocations", "perf_data"])]
    objects_from: Option<Bytes>,

    /// Leave out what code is called that java and node make while they run: they get no arguments
    /// by which they tell it
    #[arg(long)]
    no_code_names: bool,

    /// Leave out how long loads take: no breakpoints are set
    #[arg(long)]
    no_probes: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Backend {
    /// The clock, since only samples of time tell which loads the core waits for; or else signals
    Auto,
    /// A timer of CPU time, by the kernel's performance events
    Clock,
    /// A timer for each thread and a preloaded library that takes its signals: where events are
    /// forbidden, as in most containers. At most one sample for each tick of the kernel
    Signal,
    /// Loads that an Intel core samples, with their latency, level and address
    Pebs,
    /// Operations that an AMD core samples, with what their misses took
    Ibs,
}

pub(crate) fn run(args: &ProfileArgs, console: &Console) -> anyhow::Result<Exit> {
    let console = &console.with_output(args.output.as_deref());
    let file = args.output.as_deref().filter(|path| path.as_os_str() != "-" && args.system.every.is_none());
    if let Some(path) = file {
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
    if args.perf_data.is_none() && args.stored.file().is_none() {
        crate::limits::look_for_waiting()?;
    }
    let root = Path::new("/");
    let host = host::read(root);
    if let Some(line) = crate::limits::little_memory(&host.memory) {
        console.remark(&line);
    }
    let record = machine_record::of_host(&host);
    let weights = Weights::of(&host, record.as_ref().map(|(path, document)| (path.as_path(), document)));
    if let Some(path) = &args.perf_data {
        let profile = file::profile(path, window, !args.left_out.no_stacks, &host, &weights)?;
        return written(args, console, &Document::now(profile));
    }
    if let Some((format, path)) = args.stored.asked()? {
        let profile = args.stored.profile(format, path, !args.left_out.no_stacks)?;
        return written(args, console, &Document::now(profile));
    }
    if args.system.system {
        return match args.system.every {
            Some(every) => every::run(args, every, weights, console),
            None => system::run(args, weights, console),
        };
    }
    let request = Request {
        subject: match args.pid {
            Some(pid) => Subject::Process(pid),
            None => Subject::Command(args.command.clone()),
        },
        backend: match args.backend {
            Backend::Clock => sampler::Backend::Clock,
            Backend::Signal => sampler::Backend::Signal,
            Backend::Auto | Backend::Pebs | Backend::Ibs => sampler::Backend::Auto,
        },
        frequency_hz: args.frequency.map(u64::from),
        budget: args.budget / 100.0,
        duration: args.duration,
        window,
        finds_out: FindsOut {
            stacks: !args.left_out.no_stacks,
            allocations: !args.left_out.no_allocations,
            allocations_from: args.left_out.objects_from.unwrap_or_default(),
            made_code: !args.left_out.no_code_names,
            latencies: !args.left_out.no_probes,
        },
        output: if console.json() { Output::ToError } else { Output::AsItIs },
        inherited: lab::inherited::at_start(),
        caches: weights.caches,
        yield_cycles: Some(weights.yield_cycles),
        latencies: weights.latencies,
    };
    let settings = args.trace.settings(&host)?;
    if args.tries || settings.is_some() {
        trials::Program::of(args.command.clone()).can_run_again().map_err(|e| not_tried(&e))?;
    }
    // The program is forked before: it keeps its signals as they were.
    let stop = Stop::on_signals();
    let run = || match args.backend {
        Backend::Auto | Backend::Clock | Backend::Signal => sampler::session::run(&request, stop),
        Backend::Pebs => sampler::hardware::run(&request, records::profile::Backend::Pebs, root, stop),
        Backend::Ibs => sampler::hardware::run(&request, records::profile::Backend::Ibs, root, stop),
    };
    let mut profile = crate::threads::shared(run).map_err(|e| refused(&e))?;
    if let Some(settings) = &settings {
        traced::add(&args.command, settings, window, &mut profile, stop, console);
    }
    if args.tries {
        try_changes(args, &mut profile, &host, stop, console);
    }
    let document = Document::now(profile);
    // A part of a run says nothing of all of it.
    if window.is_none() {
        keep_for_harvests(&args.command, &document);
    }
    written(args, console, &document)
}

/// A profile for another verb: what the program prints goes nowhere.
pub(crate) fn of_command(command: &[OsString], host: &Host, stop: Stop) -> anyhow::Result<Profile> {
    of_subject(Subject::Command(command.to_vec()), None, host, stop)
}

/// The same of a process that is there, for this time.
pub(crate) fn of_process(
    process: u32,
    duration: Duration,
    host: &Host,
    stop: Stop,
) -> anyhow::Result<Profile> {
    of_subject(Subject::Process(process), Some(duration), host, stop)
}

fn of_subject(
    subject: Subject,
    duration: Option<Duration>,
    host: &Host,
    stop: Stop,
) -> anyhow::Result<Profile> {
    let record = machine_record::of_host(host);
    let weights = Weights::of(host, record.as_ref().map(|(path, document)| (path.as_path(), document)));
    let request = Request {
        subject,
        backend: sampler::Backend::Auto,
        frequency_hz: None,
        budget: 0.03,
        duration,
        window: None,
        finds_out: FindsOut {
            stacks: true,
            allocations: true,
            allocations_from: Bytes(0),
            made_code: false,
            latencies: true,
        },
        output: Output::Nowhere,
        inherited: lab::inherited::at_start(),
        caches: weights.caches,
        yield_cycles: Some(weights.yield_cycles),
        latencies: weights.latencies,
    };
    crate::threads::shared(|| sampler::session::run(&request, stop)).map_err(|e| refused(&e).into())
}

/// What a harvest of this program with these arguments decides by; without what it does not need.
fn keep_for_harvests(command: &[OsString], document: &Document<Profile>) {
    let program = Program::find(command, std::env::var_os("PATH").as_deref());
    let Some(key) = program.ok().and_then(|program| program.key()) else { return };
    let mut kept = document.clone();
    let Profile { objects, lines, code, calls, bandwidth, trace, .. } = &mut kept.body;
    (*calls, *trace) = (CallTree::default(), None);
    objects.clear();
    lines.clear();
    code.clear();
    bandwidth.clear();
    kept_records::keep(&key, &kept);
}

/// Keeps the record, and tells what is in it.
fn written(args: &ProfileArgs, console: &Console, document: &Document<Profile>) -> anyhow::Result<Exit> {
    let kept = args.output.as_deref().map_or(Ok(()), |path| save::record(path, document));
    let text =
        if document.body.sampling.backend.samples_accesses() { latencies::text } else { summary::text };
    console.remark(text(&document.body, args.top, args.output.as_deref(), console.width()).trim_end());
    let took = document.body.summary.overhead.estimate();
    if document.body.program.perf_data.is_none() && took.is_some_and(|took| 100.0 * took.lo > args.budget) {
        console.remark(&format!(
            "profiling took more than the {}% of --budget: the run was short, or the machine is busy",
            args.budget
        ));
    }
    console.document(document)?;
    kept?;
    // A program that failed is the thing measured, and it failed.
    Ok(match document.body.program.ended {
        ProgramEnd::Exited { code: 0 } | ProgramEnd::StillRunning | ProgramEnd::Unknown => Exit::Done,
        ProgramEnd::Exited { .. } | ProgramEnd::Killed { .. } => Exit::Failed,
    })
}

/// Tries the changes that the profile proposes. If that cannot go on, the profile is there all the
/// same.
fn try_changes(args: &ProfileArgs, profile: &mut Profile, host: &Host, stop: Stop, console: &Console) {
    let changes = trials::proposed(profile, host);
    if changes.is_empty() {
        console
            .remark("nothing to try: the profile shows no data for which a change without source is known");
    }
    let program = trials::Program::of(args.command.clone());
    let mut before = String::new();
    let mut told = |says: &str, _round: usize| {
        if before != says {
            console.remark(&format!("trying {} pairs: {says}", args.pairs));
            says.clone_into(&mut before);
        }
    };
    match trials::run(&program, &changes, usize::from(args.pairs), stop, &mut told) {
        Ok(trials) => profile.trials = trials,
        Err(e) => profile.refusals.push(Refused {
            what: "trying changes".to_owned(),
            why: e.to_string(),
            would_help: None,
        }),
    }
}

pub(crate) fn not_tried(error: &trials::TrialError) -> Refusal {
    let text = error.to_string();
    let (what, why) = text.split_once(": ").unwrap_or(("--try and --trace", &text));
    Refusal::wrong_use(what, why)
}

pub(crate) fn refused(error: &SampleError) -> Refusal {
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
        SampleError::NotAllowedForAll { .. } => Refusal::not_possible_here(what, why).would_help(
            "root; or the capability CAP_PERFMON (with CAP_SYS_PTRACE to read the files of other users' processes): sudo setcap cap_perfmon,cap_sys_ptrace,cap_dac_read_search=ep GLEANER; or sysctl kernel.perf_event_paranoid=-1; in a container, a seccomp profile that lets perf_event_open through",
        ),
        SampleError::NoCgroup { .. } => Refusal::wrong_use(what, why)
            .would_help("a path below /sys/fs/cgroup, a unit as ssh.service, or the id of a container"),
        SampleError::NoHardware { .. } => Refusal::not_possible_here(what, why).would_help(
            "--backend clock; or perf mem record where it works, and --perf-data with its file",
        ),
        SampleError::SignalsNotAttached => Refusal::wrong_use(what, why),
        SampleError::NoSignals { .. } => Refusal::not_possible_here(what, why)
            .would_help("perf events: sysctl kernel.perf_event_paranoid=2 or lower; in a container, a seccomp profile that lets perf_event_open through"),
        SampleError::NoRing { .. } => Refusal::not_possible_here(what, why)
            .would_help("a higher limit on locked memory: ulimit -l, or sysctl kernel.perf_event_mlock_kb"),
    }
}

pub(crate) fn budget(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').unwrap_or(text).parse() {
        Ok(percent) if (0.1..=100.0).contains(&percent) => Ok(percent),
        _ => Err("a budget is 0.1% to 100%".to_owned()),
    }
}
