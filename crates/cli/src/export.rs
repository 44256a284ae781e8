//! `gleaner export`: records in the formats of other tools.
//!
//! A profile has formats of its own (`export/profile.rs`); records of any kind, one or thousands,
//! become tables, lines or gauges (`export/fleet.rs`).
//!
//! To add a format: a variant of [`Format`] with its line in [`Format::kind`] and in
//! [`Format::opened_by`]; what writes it stands in the crate `export`.

mod fleet;
mod hwloc;
mod inputs;
mod profile;

use crate::console::Console;
use crate::failure::{Exit, Refusal};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// Write records in the formats of other tools
///
/// A profile record is written for profilers; its times are CPU time, and stall is the part of it
/// in which the core waited for loads. Inclusive times are those of the stacks that were sampled; a
/// record without stacks is written as its functions alone.
///
/// A machine record is written for hwloc. Records of any kind, one or thousands of many hosts,
/// become tables (--parquet, jsonl) or gauges (prometheus). What is no sound record is named and
/// left out; the exit code is then 1.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT", required_unless_present = "parquet")]
    format: Option<Format>,

    /// Add tables of all records to this directory, as Parquet in partitions by date; records that
    /// are there already are left out
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "output", "weight"])]
    parquet: Option<PathBuf>,

    /// Write to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// What stacks are weighed by; formats that hold both show this one first [default: time]
    #[arg(long, value_enum, value_name = "WEIGHT")]
    weight: Option<Weight>,

    /// A profile record ('-' for standard input); for tables and gauges any records, and
    /// directories, in which files named *.json are looked for
    #[arg(value_name = "RECORD", required = true)]
    records: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For pprof (profile.proto, compressed)
    Pprof,
    /// For OpenTelemetry's collector and backends (OTLP profiles, v1development)
    Otlp,
    /// One line a stack, weighed by samples: for flamegraph.pl and inferno
    Folded,
    /// For speedscope (JSON)
    Speedscope,
    /// For the Firefox Profiler (JSON)
    Firefox,
    /// For callgrind_annotate and KCachegrind
    Callgrind,
    /// For llvm-profdata: samples that waited for each global variable, and what was allocated at
    /// which calls (YAML)
    Memprof,
    /// The loads as comma-separated values
    CsvLoads,
    /// The functions as comma-separated values
    CsvFunctions,
    /// The data as comma-separated values
    CsvObjects,
    /// The cache lines that threads share, by offset and thread, as comma-separated values
    CsvLines,
    /// All figures of any records as rows, one a line (JSON)
    Jsonl,
    /// Headlines of any records, as gauges for Prometheus
    Prometheus,
    /// Topology and memory attributes of a machine record, for hwloc (XML)
    Hwloc,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Weight {
    /// CPU time
    Time,
    /// Time spent waiting for loads
    Stall,
}

/// What a format takes.
#[derive(Clone, Copy)]
enum FormatKind {
    /// One profile record.
    Profile(export::Format),
    /// Records of any kind.
    Any(fleet::Lines),
    /// One machine record.
    Machine,
}

impl Format {
    fn kind(self) -> FormatKind {
        FormatKind::Profile(match self {
            Self::Jsonl => return FormatKind::Any(fleet::Lines::Jsonl),
            Self::Prometheus => return FormatKind::Any(fleet::Lines::Prometheus),
            Self::Hwloc => return FormatKind::Machine,
            Self::Pprof => export::Format::Pprof,
            Self::Otlp => export::Format::Otlp,
            Self::Folded => export::Format::Folded,
            Self::Speedscope => export::Format::Speedscope,
            Self::Firefox => export::Format::Firefox,
            Self::Callgrind => export::Format::Callgrind,
            Self::Memprof => export::Format::Memprof,
            Self::CsvLoads => export::Format::CsvLoads,
            Self::CsvFunctions => export::Format::CsvFunctions,
            Self::CsvObjects => export::Format::CsvObjects,
            Self::CsvLines => export::Format::CsvLines,
        })
    }

    /// What to do with the file now.
    fn opened_by(self, file: &str) -> Option<String> {
        Some(match self {
            Self::Pprof => format!("go tool pprof -http=: {file}"),
            Self::Otlp => format!(
                "curl -H 'Content-Type: application/x-protobuf' --data-binary @{file} http://COLLECTOR:4318/v1development/profiles"
            ),
            Self::Folded => format!("flamegraph.pl {file} >flamegraph.svg"),
            Self::Speedscope => {
                format!("load {file} at https://www.speedscope.app, or: npx speedscope {file}")
            }
            Self::Firefox => format!("load {file} at https://profiler.firefox.com"),
            Self::Callgrind => format!("callgrind_annotate --inclusive=yes {file}, or kcachegrind {file}"),
            Self::Memprof => format!(
                "llvm-profdata merge --memprof-version=4 {file} -o memprof.profdata (LLVM 21 or later)"
            ),
            Self::CsvLoads
            | Self::CsvFunctions
            | Self::CsvObjects
            | Self::CsvLines
            | Self::Jsonl
            | Self::Prometheus => return None,
            Self::Hwloc => format!("lstopo --input {file}, or HWLOC_XMLFILE={file} for programs"),
        })
    }

    fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

pub(crate) fn run(args: &ExportArgs, console: &Console) -> anyhow::Result<Exit> {
    let Some(format) = args.format else {
        let Some(directory) = &args.parquet else {
            return Err(Refusal::wrong_use("export", "name a format").into());
        };
        refuse_json(console, "tables")?;
        return fleet::parquet(&args.records, directory, console);
    };
    refuse_json(console, &format!("what --format {} says", format.word()))?;
    match (format.kind(), &args.records[..]) {
        (FormatKind::Any(_) | FormatKind::Machine, _) if args.weight.is_some() => {
            Err(no_stacks(format).into())
        }
        (FormatKind::Any(lines), records) => fleet::lines(lines, records, args.file(), console),
        (FormatKind::Machine, [record]) => hwloc::run(args, format, record, console),
        (FormatKind::Profile(_), [record]) => profile::run(args, format, record, console),
        (FormatKind::Profile(_) | FormatKind::Machine, _) => {
            let what = format!("--format {}", format.word());
            Err(Refusal::wrong_use(what, "it holds one record; name one").into())
        }
    }
}

impl ExportArgs {
    /// The file to write, unless that is standard output.
    fn file(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| path.as_os_str() != "-")
    }
}

fn refuse_json(console: &Console, output: &str) -> Result<(), Refusal> {
    if console.json() { Err(Refusal::wrong_use("--json", format!("the output is {output}"))) } else { Ok(()) }
}

fn no_stacks(format: Format) -> Refusal {
    Refusal::wrong_use("--weight", format!("--format {} has no stacks to weigh", format.word()))
}
