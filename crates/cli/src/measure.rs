//! `gleaner measure`: runs experiments and writes what they found.

use crate::console::Console;
use crate::failure::{Exit, Refusal};
use crate::{cpu, save};
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use units::Bytes;

/// The experiments by name, in the order in which they are told.
pub(crate) const EXPERIMENTS: [&str; 13] = [
    "clock",
    "latency",
    "tlb",
    "mlp",
    "rob",
    "stride",
    "prefetch",
    "numa",
    "threads",
    "bandwidth",
    "windows",
    "c2c",
    "yield",
];

/// Measure this machine: latencies and sizes of each level, TLBs, parallelism, bandwidth and more
#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    /// What to measure; all of it if none is named
    #[arg(value_name = "EXPERIMENT", value_parser = PossibleValuesParser::new(EXPERIMENTS))]
    pub(crate) experiments: Vec<String>,

    /// Fewer points and blocks: everything within a minute
    #[arg(long, conflicts_with = "thorough")]
    pub(crate) quick: bool,

    /// More points and blocks, for narrower intervals
    #[arg(long)]
    pub(crate) thorough: bool,

    /// Measure on this CPU
    #[arg(long, value_name = "N")]
    pub(crate) cpu: Option<usize>,

    /// Repeat the random choices of an earlier run, whose record names its seed
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// How to tell the results
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Also write each experiment's points as CSV into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) csv: Option<PathBuf>,

    /// Write the record to this file ('-' for standard output)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Use no more memory than this, for example 512M
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_memory: Option<Bytes>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A summary for people
    Text,
    /// Two columns, as the tool of that name prints them: size in MB and latency in ns
    #[value(name = "lat_mem_rd")]
    LatMemRd,
    /// Every point of every experiment
    Csv,
}

pub(crate) fn run(args: &MeasureArgs, _console: &Console) -> anyhow::Result<Exit> {
    if let Some(cpu) = args.cpu {
        cpu::check(cpu)?;
    }
    if let Some(output) = &args.output {
        save::check(output)?;
    }
    let what = if args.experiments.is_empty() { "everything".to_owned() } else { args.experiments.join(" ") };
    Err(Refusal::not_possible_here(format!("measure {what}"), "this build holds no experiments").into())
}
