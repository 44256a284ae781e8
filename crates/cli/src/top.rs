//! `gleaner top`: which programs, functions and lines wait for memory now.
//!
//! ```text
//! rows     samples summed up by program, function, line or instruction
//! names    what stands at the places that were sampled, found out now and then
//! screen   the rows on a terminal, and its keys
//! plain    the rows as text or JSON, without a terminal
//! ```

mod names;
mod plain;
mod rows;
mod screen;

use crate::console::Console;
use crate::failure::{Exit, Refusal};
use crate::profile::refused;
use clap::{Args, ValueEnum};
use insight::Weights;
use lab::stop::Stop;
use sampler::system::{Machine, SystemRequest};
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;
use store::machine_record;

/// Show which programs, functions and lines wait for memory now
///
/// Samples all processes of the machine, as 'gleaner profile --system' does; as root, or with
/// `CAP_PERFMON`. On a terminal, Enter goes into a program, a function, a line and its code, Esc
/// goes back, and h lists the keys. Shares are of what all CPUs had to give.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Print text in place of a live screen, as is done where standard output is no terminal
    #[arg(long)]
    batch: bool,

    /// Between two screens [default: 2s, or 5s without a terminal]
    #[arg(long, value_name = "TIME", value_parser = interval)]
    interval: Option<Duration>,

    /// "Now" is this time until now
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = interval)]
    window: Duration,

    /// End after this number of screens
    #[arg(short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    number: Option<u32>,

    /// What comes first
    #[arg(long, value_enum, default_value_t = Sort::Waits)]
    sort: Sort,

    /// Only what is in this control group, and in those below it: its path, the name of a systemd
    /// unit, or the id of a container
    #[arg(long, value_name = "CGROUP")]
    cgroup: Option<String>,

    /// Samples a second of each CPU [default: as many as --budget allows, at most 199]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    frequency: Option<u32>,

    /// Let it take at most this part of what all CPUs have to give
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = crate::profile::budget)]
    budget: f64,

    /// How many programs are printed without a terminal
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
}

/// A user wants to see names, be the programs large or small.
const READING: Duration = Duration::from_millis(500);

/// What rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// Waiting for memory
    Waits,
    /// CPU time
    Time,
    /// Time in the kernel
    Kernel,
    Name,
}

fn interval(text: &str) -> Result<Duration, String> {
    const SHORTEST: Duration = Duration::from_millis(100);
    let interval = crate::times::time(text)?;
    if interval < SHORTEST { Err("100ms is the shortest".to_owned()) } else { Ok(interval) }
}

pub(crate) fn run(args: &TopArgs, console: &Console) -> anyhow::Result<Exit> {
    crate::limits::look_for_waiting()?;
    let host = host::read(Path::new("/"));
    let record = machine_record::of_host(&host);
    let weights = Weights::of(&host, record.as_ref().map(|(path, document)| (path.as_path(), document)));
    let request = SystemRequest {
        cgroup: args.cgroup.clone(),
        frequency_hz: args.frequency.map(u64::from),
        budget: args.budget / 100.0,
        stacks: false,
        reading: READING,
        caches: weights.caches,
        yield_cycles: Some(weights.yield_cycles),
        latencies: weights.latencies,
    };
    let stop = Stop::on_signals();
    let is_live =
        !args.batch && !console.json() && std::io::stdout().is_terminal() && !crate::plain::is_dumb();
    let mut machine = Machine::watch(&request).map_err(|e| refused(&e))?;
    machine.keep_recent(args.window);
    if !is_live {
        return plain::run(args, &mut machine, &request, stop, console);
    }
    if !std::io::stdin().is_terminal() {
        return Err(Refusal::wrong_use("gleaner top", "standard input is no terminal, so there are no keys")
            .would_help("--batch")
            .into());
    }
    screen::run(args, &mut machine, &request, stop)
}
