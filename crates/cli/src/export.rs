//! `gleaner export`: a profile record in the formats of other tools.
//!
//! To add a format: a variant of [`Format`] with its line in [`Format::room`] and in
//! [`Format::opened_by`]; what writes it stands in the crate `export`.

use crate::console::Console;
use crate::failure::{Exit, Refusal};
use crate::save;
use clap::{Args, ValueEnum};
use records::Problem;
use records::profile::Profile;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

/// Write a profile record in the format of another tool
///
/// Time is CPU time; stall is the part of it in which the core waited for loads. Inclusive times
/// are those of the stacks that were sampled; a record without stacks is written as its functions
/// alone.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Format,

    /// Write to this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// What stacks are weighed by; formats that hold both show this one first [default: time]
    #[arg(long, value_enum, value_name = "WEIGHT")]
    weight: Option<Weight>,

    /// A profile record ('-' for standard input)
    #[arg(value_name = "RECORD")]
    record: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For pprof (profile.proto, compressed)
    Pprof,
    /// One line a stack, weighed by samples: for flamegraph.pl and inferno
    Folded,
    /// For speedscope (JSON)
    Speedscope,
    /// For the Firefox Profiler (JSON)
    Firefox,
    /// For callgrind_annotate and KCachegrind
    Callgrind,
    /// For llvm-profdata: samples that waited for each global variable (YAML)
    Memprof,
    /// The loads as comma-separated values
    CsvLoads,
    /// The functions as comma-separated values
    CsvFunctions,
    /// The data as comma-separated values
    CsvObjects,
    /// The cache lines that threads share, by offset and thread, as comma-separated values
    CsvLines,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Weight {
    /// CPU time
    Time,
    /// Time spent waiting for loads
    Stall,
}

impl Format {
    fn room(self) -> export::Format {
        match self {
            Self::Pprof => export::Format::Pprof,
            Self::Folded => export::Format::Folded,
            Self::Speedscope => export::Format::Speedscope,
            Self::Firefox => export::Format::Firefox,
            Self::Callgrind => export::Format::Callgrind,
            Self::Memprof => export::Format::Memprof,
            Self::CsvLoads => export::Format::CsvLoads,
            Self::CsvFunctions => export::Format::CsvFunctions,
            Self::CsvObjects => export::Format::CsvObjects,
            Self::CsvLines => export::Format::CsvLines,
        }
    }

    /// What to do with the file now.
    fn opened_by(self, file: &str) -> Option<String> {
        Some(match self {
            Self::Pprof => format!("go tool pprof -http=: {file}"),
            Self::Folded => format!("flamegraph.pl {file} >flamegraph.svg"),
            Self::Speedscope => {
                format!("load {file} at https://www.speedscope.app, or: npx speedscope {file}")
            }
            Self::Firefox => format!("load {file} at https://profiler.firefox.com"),
            Self::Callgrind => format!("callgrind_annotate --inclusive=yes {file}, or kcachegrind {file}"),
            Self::Memprof => format!(
                "llvm-profdata merge --memprof-version=4 {file} -o memprof.profdata (LLVM 21 or later)"
            ),
            Self::CsvLoads | Self::CsvFunctions | Self::CsvObjects | Self::CsvLines => return None,
        })
    }

    fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

pub(crate) fn run(args: &ExportArgs, console: &Console) -> anyhow::Result<Exit> {
    let format = args.format.room();
    let file = args.output.as_deref().filter(|path| path.as_os_str() != "-");
    let option = format!("--format {}", args.format.word());
    if console.json() {
        return Err(Refusal::wrong_use("--json", format!("the output is what {option} says")).into());
    }
    if args.weight.is_some() && !format.traits().stacks {
        return Err(Refusal::wrong_use("--weight", format!("{option} has no stacks to weigh")).into());
    }
    match file {
        Some(path) => save::check(path)?,
        None if format.traits().binary && io::stdout().is_terminal() => {
            let refusal = Refusal::wrong_use(option, "binary, and standard output is a terminal");
            return Err(refusal.would_help("name a file with -o").into());
        }
        None => {}
    }
    let document = read(&args.record)?;
    let weight = match args.weight {
        None | Some(Weight::Time) => export::Weight::Time,
        Some(Weight::Stall) => export::Weight::Stall,
    };
    let record = || args.record.display().to_string();
    let bytes = export::profile(&document, format, weight)
        .map_err(|error| Refusal::wrong_use(record(), format!("{error}: nothing for {option}")))?;
    if format.traits().stacks && !export::has_stacks(&document.body) {
        console.remark(&format!("{}: no stacks were sampled; these are its functions alone", record()));
    }
    match file {
        Some(path) => {
            save::bytes(path, &bytes)?;
            if let Some(how) = args.format.opened_by(&path.display().to_string()) {
                console.remark(&format!("next: {how}"));
            }
        }
        None => console.stdout_bytes(&bytes)?,
    }
    Ok(Exit::Done)
}

fn read(path: &Path) -> anyhow::Result<records::Document<Profile>> {
    records::read::<Profile>(path).map_err(|error| match error.problem {
        Problem::WrongKind { found, .. } => {
            let why = format!("a '{found}' record; only profile records can be exported");
            Refusal::wrong_use(path.display().to_string(), why).into()
        }
        _ => error.into(),
    })
}
