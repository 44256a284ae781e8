//! Records in the formats of other tools. Pure: records in, bytes out.
//!
//! Records of many hosts become tables in `fleet`, a machine's memory attributes in `hwloc`, the
//! loads of a file a table in `sites`.
//!
//! [`profile`] writes one record in one [`Format`]. To add a format: a file here with a function
//! from the record and its [`Stacks`] to text or bytes, a variant of [`Format`] with its row in
//! [`Format::traits`], and a test in `crates/export/tests` that lets a reader of the format open
//! what is written.
//!
//! What all formats with stacks share is in `stacks.rs`: the tree of calls with its samples as
//! time, and a flat stand-in made of the functions where a record has no stacks.
#![forbid(unsafe_code)]

mod callgrind;
mod clean;
mod csv;
mod firefox;
pub mod fleet;
mod folded;
mod heap_records;
pub mod hwloc;
mod memprof;
mod numbered;
mod otlp;
mod pprof;
mod protobuf;
pub mod sites;
mod speedscope;
mod stacks;

use records::Document;
use records::profile::Profile;
use stacks::Stacks;

/// A format of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `profile.proto`, compressed: for `go tool pprof`.
    Pprof,
    /// `ProfilesData` of OpenTelemetry, as its collector takes it.
    Otlp,
    /// One line a stack: for flamegraph.pl and inferno.
    Folded,
    /// JSON for speedscope.
    Speedscope,
    /// JSON for the Firefox Profiler ("processed profile").
    Firefox,
    /// For callgrind_annotate and KCachegrind.
    Callgrind,
    /// YAML for llvm-profdata: what is allocated where, and how often data is read.
    Memprof,
    CsvLoads,
    CsvFunctions,
    CsvObjects,
    CsvLines,
}

/// What a stack is weighed by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// CPU time.
    #[default]
    Time,
    /// The part of it in which the core waited for loads.
    Stall,
}

/// What verbs have to know of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// It is no text.
    pub binary: bool,
    /// It shows who called what; so it is flat where a record has no stacks.
    pub stacks: bool,
}

impl Format {
    pub const ALL: [Self; 11] = [
        Self::Pprof,
        Self::Otlp,
        Self::Folded,
        Self::Speedscope,
        Self::Firefox,
        Self::Callgrind,
        Self::Memprof,
        Self::CsvLoads,
        Self::CsvFunctions,
        Self::CsvObjects,
        Self::CsvLines,
    ];

    pub fn traits(self) -> Traits {
        match self {
            Self::Pprof | Self::Otlp => Traits { binary: true, stacks: true },
            Self::Folded | Self::Speedscope | Self::Firefox | Self::Callgrind => {
                Traits { binary: false, stacks: true }
            }
            Self::Memprof | Self::CsvLoads | Self::CsvFunctions | Self::CsvObjects | Self::CsvLines => {
                Traits { binary: false, stacks: false }
            }
        }
    }
}

/// Why a record cannot be written in a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    #[error("its tree of calls is damaged: node {0} names a caller or a frame that is not before it")]
    Damaged(usize),
    #[error("it has no samples")]
    NoSamples,
    #[error("none of its samples waited for a load")]
    NoStall,
    #[error("it names no variable that loads waited for, and no allocation by debug information")]
    NoVariables,
    #[error("its samples are loads that the hardware chose, not time: folded stacks and CSV have them")]
    NoTime,
}

/// Whether the record says who called what. If not, formats with stacks get its functions.
pub fn has_stacks(profile: &Profile) -> bool {
    profile.calls.nodes.iter().any(|node| node.samples > 0)
}

/// The record in this format. Formats that hold both time and stall show `weight` first.
pub fn profile(document: &Document<Profile>, format: Format, weight: Weight) -> Result<Vec<u8>, ExportError> {
    let profile = &document.body;
    match format {
        Format::Memprof => return memprof::text(document).map(String::into_bytes),
        Format::CsvLoads => return Ok(csv::loads(profile).into_bytes()),
        Format::CsvFunctions => return Ok(csv::functions(profile).into_bytes()),
        Format::CsvObjects => return Ok(csv::objects(profile).into_bytes()),
        Format::CsvLines => return Ok(csv::lines(profile).into_bytes()),
        Format::Pprof
        | Format::Otlp
        | Format::Folded
        | Format::Speedscope
        | Format::Firefox
        | Format::Callgrind => {}
    }
    let needs_time = !matches!(format, Format::Folded);
    if profile.sampling.backend.samples_accesses() && needs_time {
        return Err(ExportError::NoTime);
    }
    let stacks = Stacks::of(profile)?;
    if stacks.total(Weight::Time) == 0 {
        return Err(ExportError::NoSamples);
    }
    if weight == Weight::Stall && stacks.total(Weight::Stall) == 0 {
        return Err(ExportError::NoStall);
    }
    Ok(match format {
        Format::Pprof => pprof::gzipped(document, &stacks, weight),
        Format::Otlp => otlp::bytes(document, &stacks, weight),
        Format::Folded => folded::text(&stacks, weight).into_bytes(),
        Format::Speedscope => speedscope::text(document, &stacks, weight).into_bytes(),
        Format::Firefox => firefox::text(document, &stacks, weight).into_bytes(),
        Format::Callgrind => callgrind::text(document, &stacks, weight).into_bytes(),
        Format::Memprof | Format::CsvLoads | Format::CsvFunctions | Format::CsvObjects | Format::CsvLines => {
            unreachable!("written above")
        }
    })
}

/// The uncompressed bytes of a pprof profile: what tests compare, since compressors differ.
pub fn pprof_uncompressed(document: &Document<Profile>, weight: Weight) -> Result<Vec<u8>, ExportError> {
    Ok(pprof::bytes(document, &Stacks::of(&document.body)?, weight))
}
