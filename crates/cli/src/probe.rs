//! `gleaner probe`: a few figures in ten seconds, to compare hosts of a fleet.
//!
//! What is measured stands in the experiments, what a limit says in `compare::limits`.

use crate::console::Console;
use crate::failure::{self, Exit, Refusal};
use crate::measure::{self, MeasureArgs};
use crate::times::time;
use crate::{cpu, live, save, summary};
use ::compare::limits::{self, Kept, Limit};
use clap::Args;
use experiments::catalogue;
use lab::stop::Stop;
use records::Document;
use records::machine::{Effort, Machine, Status};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use units::Bytes;

const SHORTEST: Duration = Duration::from_secs(3);
const LONGEST: Duration = Duration::from_secs(600);
/// Reading the host and starting take this long at most, but not from a budget that is short.
const LEAST_MEASURING_SECONDS: f64 = 2.0;

/// Measure in ten seconds what gives away faults in a fleet: slow memory, prefetchers or huge pages
/// that are off, noisy neighbours
///
/// Hosts of the same hardware should have the same figures: 'gleaner export' puts the records of
/// many hosts into tables, and docs/fleet.md shows how to find the odd ones. While it runs, all
/// CPUs read memory as fast as they can. With --expect the exit code is 4 if a figure breaks its
/// limit, and 5 if that is not known of one.
#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// How long it may take, from 3s to 10min
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    budget: Duration,

    /// Wait a random part of this time first, so that a thousand hosts do not start at once
    /// [default with --jitter alone: 60s]
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "60s", value_parser = time)]
    jitter: Option<Duration>,

    /// The host's name in the record [default: as the system says]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Compare the figures with the limits in this file, such as 'memory_latency <= 130 ns' or
    /// 'bandwidth_all >= 280 GB/s', one a line
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,

    /// Write the record to this file ('-' for standard output), or as NAME-TIME.json into this
    /// directory
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Measure on this CPU [default: the last one that no other gleaner uses]
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,

    /// Use no more memory than this, for example 512M
    #[arg(long, value_name = "SIZE")]
    max_memory: Option<Bytes>,
}

pub(crate) fn run(args: &ProbeArgs, console: &Console) -> anyhow::Result<Exit> {
    let console = &console.with_output(args.output.as_deref());
    if !(SHORTEST..=LONGEST).contains(&args.budget) {
        return Err(Refusal::wrong_use("--budget", "from 3s to 10min").into());
    }
    if let Some(cpu) = args.cpu {
        cpu::check(cpu)?;
    }
    let limits = args.expect.as_deref().map(expected).transpose()?;
    if let Some(path) = args.output.as_deref().filter(|path| !path.is_dir()) {
        save::check(path)?;
    }
    wait(args.jitter.unwrap_or_default())?;
    let document = Document::now(measured(args, console)?);
    if document.body.run.interrupted && document.body.run.blocks.valid == 0 {
        return Err(stopped().into());
    }
    if let Some(path) = &args.output {
        let file = if path.is_dir() { path.join(file_name(&document)) } else { path.clone() };
        save::record(&file, &document)?;
        if file.as_os_str() != "-" {
            console.remark(&format!("wrote {}", file.display()));
        }
    }
    console.text(&summary::of(&document.body, console.colour(), console.width()))?;
    console.document(&document)?;
    ended(&document.body, limits.as_deref())
}

/// Sleeps for a random part of this time, or until a stop is asked for.
fn wait(most: Duration) -> Result<(), Refusal> {
    let stop = Stop::on_signals();
    // A new hasher's keys come from the kernel's random numbers: hosts that start in the same
    // microsecond differ.
    let random = RandomState::new().hash_one(std::process::id()) as f64 / u64::MAX as f64;
    let until = Instant::now() + most.mul_f64(random);
    while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
        if stop.asked() {
            return Err(stopped());
        }
        std::thread::sleep(left.min(Duration::from_millis(100)));
    }
    Ok(())
}

fn stopped() -> Refusal {
    Refusal::failed("probe", "stopped before anything was measured; nothing is written")
}

fn measured(args: &ProbeArgs, console: &Console) -> anyhow::Result<Machine> {
    let began = Instant::now();
    let host = live::host_without_trying();
    let chosen = MeasureArgs { cpu: args.cpu, max_memory: args.max_memory, ..MeasureArgs::only(&[]) };
    let (mut request, _claim) = measure::request(&chosen, &host, console)?;
    request.experiments = vec![&catalogue::PROBE];
    request.effort = Effort::Quick;
    let left = args.budget.saturating_sub(began.elapsed()).as_secs_f64();
    request.seconds = Some(left.max(LEAST_MEASURING_SECONDS));
    let mut progress = console.progress();
    let mut machine = experiments::measure(&request, &host, progress.as_mut())
        .map_err(|refused| measure::refusal("probe", &refused))?;
    progress.finish();
    let name = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    machine.run.host_name = Some(args.name.clone().unwrap_or_else(name));
    Ok(machine)
}

/// `node17-2026-11-27T09:00:00Z.json`, without what a file's name should not have.
fn file_name(document: &Document<Machine>) -> String {
    let name = document.body.run.host_name.as_deref().unwrap_or("host");
    let kept = |c: char| if c.is_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = name.trim_start_matches('.').chars().map(kept).collect();
    format!("{name}-{}.json", document.header.created.replace(':', ""))
}

fn expected(path: &Path) -> Result<Vec<Limit>, Refusal> {
    let refuse = |why: String| Refusal::wrong_use(path.display().to_string(), why);
    let text = String::from_utf8(save::read(path)?).map_err(|_| refuse("not text".to_owned()))?;
    let limits = limits::limits(&text).map_err(|error| refuse(error.to_string()))?;
    if limits.is_empty() { Err(refuse("there is no limit in it".to_owned())) } else { Ok(limits) }
}

/// The exit code, and a line for each limit that is not kept.
fn ended(machine: &Machine, limits: Option<&[Limit]>) -> anyhow::Result<Exit> {
    let outcome = machine.experiments.probe.as_ref();
    let Some(probe) = outcome.and_then(|outcome| outcome.result.as_ref()) else {
        let why = outcome.and_then(|outcome| outcome.why.clone()).unwrap_or_else(|| "stopped".to_owned());
        let not_possible = outcome.is_some_and(|outcome| outcome.status == Status::NotPossible);
        let refuse = if not_possible { Refusal::not_possible_here } else { Refusal::failed };
        let refusal = refuse("probe".to_owned(), why);
        return Err(match outcome {
            Some(outcome) => refusal.helped_by(outcome).into(),
            None => refusal.into(),
        });
    };
    if machine.run.interrupted {
        failure::tell("probe: stopped before its end");
        return Ok(Exit::Failed);
    }
    let mut exit = Exit::Done;
    for limit in limits.unwrap_or_default() {
        let figures = probe.figures();
        let figure = figures.iter().find(|(name, _)| *name == limit.figure);
        let measured = figure.map_or_else(String::new, |(_, quantity)| quantity.brief());
        match limits::kept(limit, probe) {
            Kept::Kept => {}
            Kept::Broken => {
                failure::tell(&format!("limit broken: {}; measured: {measured}", limit.text));
                exit = Exit::Regressed;
            }
            Kept::NotKnown(why) => {
                failure::tell(&format!("limit not decided: {}; measured: {measured} ({why})", limit.text));
                if exit == Exit::Done {
                    exit = Exit::Inconclusive;
                }
            }
        }
    }
    Ok(exit)
}
